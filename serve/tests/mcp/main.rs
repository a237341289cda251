//! A server over pipes, driven by lines of JSON as a client sends them.

#[cfg(test)]
mod bounds;
#[cfg(test)]
mod eras;
#[cfg(test)]
mod forgetting;
#[cfg(test)]
mod frames;
#[cfg(test)]
mod kit;
#[cfg(test)]
mod life;
#[cfg(test)]
mod listed;
#[cfg(test)]
mod memories;
#[cfg(test)]
mod races;
