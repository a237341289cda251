//! The socket of an open store, in the store's directory: listening on it, and finding who listens.
//!
//! Only processes of the same user speak with each other: the socket has mode 0600, and both ends ask the system
//! who is at the other. A path too long for a socket's address is named by way of the open directory.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};
use rustix::process::geteuid;

/// Name of the socket in the directory of a store.
const NAME: &str = "socket";
/// Its name until it is ready.
const NEW_NAME: &str = "socket.new";
/// Most bytes of the path in a socket's address: 108 with the final zero.
const MAX_ADDRESS_BYTES: usize = 107;

/// Time between two attempts to connect to a process that has no room for one more connection.
const CONNECT_AGAIN: Duration = Duration::from_millis(5);

/// The socket of the process that has a store open.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) socket: UnixListener,
    path: PathBuf,
    /// Device and number of the socket's file.
    file: (u64, u64),
}

impl Listener {
    /// Listens in the directory of a store, in place of a socket that a process left there when it was killed. The
    /// caller holds the store's lock.
    pub(super) fn bind(directory: &Path) -> io::Result<Self> {
        let (new, path) = (directory.join(NEW_NAME), directory.join(NAME));
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let socket = with_address(directory, NEW_NAME, |address| UnixListener::bind(address))?;
        fs::set_permissions(&new, Permissions::from_mode(0o600))?;
        let file = fs::symlink_metadata(&new).map(|file| number(&file))?;
        if let Err(error) = fs::rename(&new, &path) {
            let _ = fs::remove_file(&new);
            return Err(error);
        }
        Ok(Self { socket, path, file })
    }

    /// Removes the socket, so that nobody looks for who listens no more. The caller still holds the store's lock.
    pub(super) fn remove(&self) {
        // Where it stays it is one that a killed process leaves. In a directory that was replaced it is another's.
        if fs::symlink_metadata(&self.path).is_ok_and(|found| number(&found) == self.file) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Device and number of a file.
fn number(file: &fs::Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

/// The process at the other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Peer {
    pub(super) pid: u32,
    pub(super) is_same_user: bool,
}

/// Returns who is at the other end. A process that cannot be seen from here, as in another container, has the number 0.
pub(super) fn peer(stream: &UnixStream) -> io::Result<Peer> {
    let of = getsockopt(stream, PeerCredentials)?;
    let pid = u32::try_from(of.pid()).unwrap_or_default();
    Ok(Peer { pid, is_same_user: of.uid() == geteuid().as_raw() })
}

/// Connects to who has the store in a directory open; `None` if nobody listens. One that takes no connection until
/// `until` times out.
pub(super) fn connect(directory: &Path, until: Instant) -> io::Result<Option<UnixStream>> {
    let place = directory.join(NAME);
    match fs::symlink_metadata(&place) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
        Ok(found) if !found.file_type().is_socket() => {
            let message = format!("{} is no socket: remove it", place.display());
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        Ok(_) => {}
    }
    match with_address(directory, NAME, |address| connect_until(address, until)) {
        Ok(stream) => Ok(Some(stream)),
        Err(error)
            if [io::ErrorKind::ConnectionRefused, io::ErrorKind::NotFound]
                .contains(&error.kind()) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Connects without waiting where the other end has no room for one more, but tries again until then.
fn connect_until(address: &Path, until: Instant) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let address = SocketAddrUnix::new(address)?;
    loop {
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        match rustix::net::connect(&socket, &address) {
            Ok(()) => {
                let stream = UnixStream::from(socket);
                stream.set_nonblocking(false)?;
                return Ok(stream);
            }
            Err(Errno::AGAIN) if Instant::now() < until => thread::sleep(CONNECT_AGAIN),
            Err(Errno::AGAIN) => return Err(io::Error::from(io::ErrorKind::TimedOut)),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Calls with the address of a socket in a directory. One too long leads through the directory, opened.
fn with_address<T>(
    directory: &Path,
    name: &str,
    call: impl Fn(&Path) -> io::Result<T>,
) -> io::Result<T> {
    let address = directory.join(name);
    if address.as_os_str().len() <= MAX_ADDRESS_BYTES {
        return call(&address);
    }
    let opened = File::open(directory)?;
    call(&PathBuf::from(format!("/proc/self/fd/{}/{name}", opened.as_raw_fd())))
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::fs::symlink;

    use super::*;

    fn greets(directory: &Path) {
        let listener = Listener::bind(directory).unwrap();
        let mode = fs::metadata(directory.join(NAME)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let mut there = connect(directory, Instant::now()).unwrap().unwrap();
        let (mut here, _) = listener.socket.accept().unwrap();
        let own = Peer { pid: std::process::id(), is_same_user: true };
        assert_eq!((peer(&there).unwrap(), peer(&here).unwrap()), (own, own));
        there.write_all(b"tea").unwrap();
        drop(there);
        let mut told = String::new();
        here.read_to_string(&mut told).unwrap();
        assert_eq!(told, "tea");
        listener.remove();
        assert!(connect(directory, Instant::now()).unwrap().is_none());
    }

    #[test]
    fn a_path_of_any_length_is_listened_on() {
        let dir = tempfile::tempdir().unwrap();
        greets(dir.path());
        let deep = dir.path().join("d".repeat(200)).join("e".repeat(200));
        fs::create_dir_all(&deep).unwrap();
        greets(&deep);
    }

    #[test]
    fn a_socket_that_was_left_is_nobody_and_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        drop(Listener::bind(dir.path()).unwrap());
        assert!(dir.path().join(NAME).exists());
        assert!(connect(dir.path(), Instant::now()).unwrap().is_none());
        let _new = Listener::bind(dir.path()).unwrap();
        assert!(connect(dir.path(), Instant::now()).unwrap().is_some());
    }

    #[test]
    fn a_link_is_not_followed() {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let _elsewhere = Listener::bind(other.path()).unwrap();
        symlink(other.path().join(NAME), dir.path().join(NAME)).unwrap();
        let refused = connect(dir.path(), Instant::now()).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidData, "{refused}");
        // Who opens the store takes its place.
        let _here = Listener::bind(dir.path()).unwrap();
        assert!(connect(dir.path(), Instant::now()).unwrap().is_some());
        assert!(connect(other.path(), Instant::now()).unwrap().is_some());
    }
}
