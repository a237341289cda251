//! A server of this process on a port of its own, driven by HTTP as a client writes it on a connection.
#![cfg(feature = "http")]

#[cfg(test)]
mod attacks;
#[cfg(test)]
mod bounds;
#[cfg(test)]
mod browsers;
#[cfg(test)]
mod feed;
#[cfg(test)]
mod kit;
#[cfg(test)]
mod mcp;
#[cfg(test)]
mod positions;
#[cfg(test)]
mod routes;
#[cfg(test)]
mod socket;
#[cfg(test)]
mod streams;
#[cfg(test)]
mod tenants;
#[cfg(test)]
mod tokens;
