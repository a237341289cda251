//! How much is asked at once: requests of a token by time, requests that run, and those that fail to sign in.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::failure::{Failure, Result};
use super::listen::network_of;

/// Requests that run at once. Each has a thread meanwhile.
pub(super) const MAX_RUNNING: usize = 64;
/// Requests that wait for their turn; beyond, they are refused.
pub(super) const MAX_WAITING: usize = 1_024;
/// Requests of one token that run at once, so that it leaves places for others.
pub(super) const MAX_RUNNING_OF_TOKEN: usize = 16;
/// Requests of one token that run or wait at once.
pub(super) const MAX_OF_TOKEN: usize = 256;
/// Long requests, such as verify and compact, that run at once.
pub(super) const MAX_LONG: usize = 2;
/// Requests that fail to sign in, of one address of the network in a minute.
pub(super) const MAX_FAILED_A_MINUTE: u32 = 60;
/// Bytes of large bodies that are held at once, of requests and of answers that are not taken yet.
pub(super) const MAX_HELD_BYTES: usize = 256 << 20;
/// The same of one token.
pub(super) const MAX_HELD_BYTES_OF_TOKEN: usize = 64 << 20;
/// Bytes of a body that is not counted.
pub(super) const SMALL_BYTES: usize = 64 << 10;
/// How long a large body waits for room.
const ROOM_TIME: Duration = Duration::from_secs(5);
/// Addresses of the network that are remembered.
const MAX_ADDRESSES: usize = 4_096;

/// So many a second, and as many again at once.
#[derive(Debug)]
pub(super) struct Bucket {
    per_second: f64,
    state: Mutex<(f64, Instant)>,
}

impl Bucket {
    pub(super) fn new(per_second: u32) -> Self {
        let per_second = f64::from(per_second);
        Self { per_second, state: Mutex::new((per_second, Instant::now())) }
    }

    /// Takes one, if there is one.
    pub(super) fn take(&self) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (left, at) = *state;
        let now = Instant::now();
        let left = now.duration_since(at).as_secs_f64().mul_add(self.per_second, left);
        let left = left.min(self.per_second);
        let has = left >= 1.0;
        *state = (if has { left - 1.0 } else { left }, now);
        has
    }
}

/// The places of requests that run.
#[derive(Debug)]
pub(super) struct Gate {
    running: Arc<Semaphore>,
    long: Arc<Semaphore>,
    waiting: AtomicUsize,
}

/// A place, until it is dropped. It goes with the work, which may outlive the request.
#[derive(Debug)]
pub(super) struct Turn {
    /// Of the places of the token; none of what takes long.
    own: Option<Arc<OwnedSemaphorePermit>>,
    _of_all: OwnedSemaphorePermit,
}

impl Turn {
    /// The place among those of its token, which may be kept for longer than that among all.
    pub(super) fn own(&self) -> Option<Arc<OwnedSemaphorePermit>> {
        self.own.clone()
    }
}

/// Counts one that waits.
struct Waits<'g>(&'g AtomicUsize);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self {
            running: Arc::new(Semaphore::new(MAX_RUNNING)),
            long: Arc::new(Semaphore::new(MAX_LONG)),
            waiting: AtomicUsize::new(0),
        }
    }
}

impl Gate {
    /// Waits for a place: of those of a token first, then of those of all.
    ///
    /// # Errors
    /// 503 where too many wait.
    pub(super) async fn enter(&self, own: &Arc<Semaphore>, is_long: bool) -> Result<Turn> {
        let busy = |what: &str| Failure::too_many(StatusCode::SERVICE_UNAVAILABLE, what, 1);
        if is_long {
            // Those that take long have places of their own, so that they keep nobody waiting.
            let long = Arc::clone(&self.long).try_acquire_owned();
            let long = long.map_err(|_| busy("others of its kind are running"))?;
            return Ok(Turn { own: None, _of_all: long });
        }
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waits = Waits(&self.waiting);
        if before >= MAX_WAITING {
            return Err(busy("too many requests wait"));
        }
        let stopping = |_| busy("the server is stopping");
        let own = Arc::clone(own).acquire_owned().await.map_err(stopping)?;
        let of_all = Arc::clone(&self.running).acquire_owned().await.map_err(stopping)?;
        Ok(Turn { own: Some(Arc::new(own)), _of_all: of_all })
    }

    /// Requests that run.
    pub(super) fn running(&self) -> usize {
        let free = self.running.available_permits() + self.long.available_permits();
        (MAX_RUNNING + MAX_LONG).saturating_sub(free)
    }

    /// Requests that wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }
}

/// Room for large bodies, in KiB.
#[derive(Debug, Clone)]
pub(super) struct Room {
    places: Arc<Semaphore>,
    /// All of it.
    size: u32,
}

/// Room that a body takes, until it is dropped.
#[derive(Debug, Default)]
pub(super) struct Taken {
    held: Vec<OwnedSemaphorePermit>,
    /// Of the room of a client, and of that of all.
    units: [u32; 2],
}

impl Room {
    pub(super) fn new(bytes: usize) -> Self {
        let size = u32::try_from(bytes >> 10).unwrap_or(u32::MAX);
        Self { places: Arc::new(Semaphore::new(bytes >> 10)), size }
    }

    /// Waits for room for a body, here and in the room of all. A body larger than the room takes all of it, a small one
    /// none.
    ///
    /// # Errors
    /// 503 where there is none for a while.
    pub(super) async fn take(&self, all: &Self, bytes: usize) -> Result<Taken> {
        let mut taken = Taken::default();
        if bytes > SMALL_BYTES {
            self.grow(all, &mut taken, bytes).await?;
        }
        Ok(taken)
    }

    /// Waits until a body that has grown to so many bytes has room.
    ///
    /// # Errors
    /// As [`Room::take`].
    pub(super) async fn grow(&self, all: &Self, taken: &mut Taken, bytes: usize) -> Result<()> {
        let units = u32::try_from(bytes.div_ceil(1 << 10)).unwrap_or(u32::MAX);
        let more = async {
            for (room, has) in [self, all].into_iter().zip(&mut taken.units) {
                let wanted = units.min(room.size).saturating_sub(*has);
                if wanted > 0 {
                    let places = Arc::clone(&room.places);
                    taken.held.push(places.acquire_many_owned(wanted).await.ok()?);
                    *has = has.saturating_add(wanted);
                }
            }
            Some(())
        };
        let more = tokio::time::timeout(ROOM_TIME, more).await;
        more.ok().flatten().ok_or_else(|| {
            let message = "too much is under way: answers that nobody takes, or large requests";
            Failure::too_many(StatusCode::SERVICE_UNAVAILABLE, message, 5)
        })
    }
}

/// Bytes that a JSON object takes at most in memory, and any other value.
const OBJECT_BYTES: usize = 1_100;
const VALUE_BYTES: usize = 180;

/// The bytes that a body of JSON comes to when it is read, which may be many times its own: `{"":0}` has six.
pub(super) fn read_bytes(body: &[u8]) -> usize {
    let (mut objects, mut values) = (0_usize, 0_usize);
    let (mut in_text, mut escaped) = (false, false);
    for byte in body {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            _ if in_text => {}
            b'{' => objects += 1,
            b',' | b'[' => values += 1,
            _ => {}
        }
    }
    let values = values.saturating_mul(VALUE_BYTES);
    objects.saturating_mul(OBJECT_BYTES).saturating_add(values).max(body.len())
}

/// Requests that failed to sign in, by the address they came from. One with a token that holds is never counted, nor
/// refused for others.
#[derive(Debug, Default)]
pub(super) struct Failed(Mutex<HashMap<IpAddr, (u32, Option<Instant>)>>);

impl Failed {
    /// Counts one.
    ///
    /// # Errors
    /// 429 after too many in a minute.
    pub(super) fn count(&self, from: IpAddr) -> Result<()> {
        let from = network_of(from);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let minute = Duration::from_secs(60);
        if all.len() >= MAX_ADDRESSES {
            all.retain(|_, (_, since)| since.is_some_and(|since| since.elapsed() < minute));
        }
        if all.len() >= MAX_ADDRESSES && !all.contains_key(&from) {
            return Err(Failure::too_many(StatusCode::TOO_MANY_REQUESTS, "too many tries", 60));
        }
        let (count, since) = all.entry(from).or_default();
        if since.is_none_or(|since| since.elapsed() >= minute) {
            (*count, *since) = (0, Some(Instant::now()));
        }
        *count = count.saturating_add(1);
        match *count > MAX_FAILED_A_MINUTE {
            true => Err(Failure::too_many(StatusCode::TOO_MANY_REQUESTS, "too many tries", 60)),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_values_are_counted_and_those_of_texts_are_not() {
        assert_eq!(read_bytes(b""), 0);
        assert_eq!(read_bytes(br#""a,[{\",""#), 9);
        assert_eq!(read_bytes(br#"{"a":[1,2]}"#), OBJECT_BYTES + 2 * VALUE_BYTES);
        assert_eq!(read_bytes(br#"{"a\\":{}}"#), 2 * OBJECT_BYTES);
    }

    #[tokio::test]
    async fn room_grows_with_its_body_and_one_larger_than_the_room_takes_all() {
        let (own, all) = (Room::new(4 << 20), Room::new(16 << 20));
        let mut taken = own.take(&all, 1 << 20).await.unwrap();
        own.grow(&all, &mut taken, 2 << 20).await.unwrap();
        own.grow(&all, &mut taken, 1 << 20).await.unwrap();
        assert_eq!((own.places.available_permits(), all.places.available_permits()), (2048, 14336));
        own.grow(&all, &mut taken, 8 << 20).await.unwrap();
        assert_eq!((own.places.available_permits(), all.places.available_permits()), (0, 8192));
        drop(taken);
        assert_eq!((own.places.available_permits(), all.places.available_permits()), (4096, 16384));
        assert_eq!(own.take(&all, SMALL_BYTES).await.unwrap().units, [0, 0]);
    }

    #[test]
    fn a_bucket_gives_what_it_holds_and_fills_again() {
        let bucket = Bucket::new(50);
        let taken = (0..200).filter(|_| bucket.take()).count();
        assert!((50..200).contains(&taken), "{taken}");
        std::thread::sleep(Duration::from_millis(100));
        assert!(bucket.take());
    }

    #[test]
    fn failures_are_counted_by_the_address_they_come_from() {
        let failed = Failed::default();
        let (one, other) = (IpAddr::from([127, 0, 0, 1]), IpAddr::from([10, 0, 0, 1]));
        for _ in 0..MAX_FAILED_A_MINUTE {
            failed.count(one).unwrap();
        }
        assert_eq!(failed.count(one).unwrap_err().status(), StatusCode::TOO_MANY_REQUESTS);
        failed.count(other).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn large_bodies_of_one_token_leave_room_for_others() {
        let (all, one, other) = (Room::new(8 << 20), Room::new(4 << 20), Room::new(4 << 20));
        let held = one.take(&all, 3 << 20).await.unwrap();
        assert_eq!(one.take(&all, 2 << 20).await.unwrap_err().status().as_u16(), 503);
        other.take(&all, 4 << 20).await.unwrap();
        one.take(&all, 64 << 10).await.unwrap();
        drop(held);
        // One that is larger than the room takes all of it.
        let large = one.take(&all, 9 << 20).await.unwrap();
        assert_eq!(one.take(&all, 1 << 20).await.unwrap_err().status().as_u16(), 503);
        drop(large);
        one.take(&all, 4 << 20).await.unwrap();
    }

    #[tokio::test]
    async fn long_requests_keep_nobody_waiting() {
        let gate = Gate::default();
        let own = Arc::new(Semaphore::new(1));
        let turns = [gate.enter(&own, true).await.unwrap(), gate.enter(&own, true).await.unwrap()];
        let refused = gate.enter(&own, true).await.unwrap_err();
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        let _short = gate.enter(&own, false).await.unwrap();
        assert_eq!(gate.running(), 3);
        drop(turns);
        gate.enter(&own, true).await.unwrap();
    }
}
