//! Erasure: what it takes, what it leaves, what refuses it, and that nothing of it comes back.

#[cfg(test)]
#[path = "../kill/child.rs"]
mod child;
#[cfg(test)]
mod consents;
#[cfg(test)]
mod kill;
#[cfg(test)]
mod kit;
#[cfg(test)]
#[path = "../kit/random.rs"]
mod random;
#[cfg(test)]
mod reads;
#[cfg(test)]
mod refusals;
#[cfg(test)]
mod report;
#[cfg(test)]
mod returns;
#[cfg(test)]
mod scan;
#[cfg(test)]
mod sweep;
