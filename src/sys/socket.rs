//! The listening side of a Unix stream socket, and who is at the other end.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::dir::Dir;
use super::fd::{adopt, check, quiet_sigpipe, retry, set_cloexec, set_nonblocking};

/// Connections that may wait to be accepted; the kernel lowers it to its own maximum. A full queue is an error for
/// the client, not a wait.
const BACKLOG: libc::c_int = 4096;

/// Listens on a new socket `name` in `dir`, mode 0600, non-blocking. Removing it is the directory's business.
pub(crate) fn listen(dir: &Dir, name: &str) -> io::Result<OwnedFd> {
    let path = dir.path().join(name);
    listen_at(&path).map_err(|error| {
        let path = path.display();
        io::Error::new(error.kind(), format!("cannot listen on {path}: {error}"))
    })
}

fn listen_at(path: &Path) -> io::Result<OwnedFd> {
    let address = address_of(path)?;
    let socket = stream_socket()?;
    let len = std::mem::size_of_val(&address) as libc::socklen_t;
    // SAFETY: pointer and length describe `address`, which outlives the call.
    check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), len) })?;
    // The umask has had its say in the mode. Until `listen` nobody can connect.
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: `path` is NUL-terminated and outlives the call.
    check(unsafe { libc::chmod(path.as_ptr(), 0o600) })?;
    // SAFETY: takes integers.
    check(unsafe { libc::listen(socket.as_raw_fd(), BACKLOG) })?;
    Ok(socket)
}

fn address_of(path: &Path) -> io::Result<libc::sockaddr_un> {
    // SAFETY: all zero is a valid sockaddr_un, and ends whatever path is copied into it.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    let (bytes, room) = (path.as_os_str().as_bytes(), address.sun_path.len() - 1);
    if bytes.len() > room {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!(
                "the path has {} bytes, a socket's at most {room}",
                bytes.len()
            ),
        ));
    }
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    for (to, from) in address.sun_path.iter_mut().zip(bytes) {
        *to = *from as libc::c_char;
    }
    Ok(address)
}

fn stream_socket() -> io::Result<OwnedFd> {
    #[cfg(all(target_os = "linux", not(ptc_portable)))]
    {
        let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: takes integers; the new descriptor is adopted at once.
        let made = unsafe { check(libc::socket(libc::AF_UNIX, kind, 0)).and_then(|fd| adopt(fd)) };
        match made {
            Err(error) if super::fd::is_missing(&error) => {}
            made => return made,
        }
    }
    // SAFETY: as above.
    let socket = unsafe { adopt(check(libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0))?)? };
    prepare(&socket)?;
    Ok(socket)
}

/// What Linux does while it makes a socket.
fn prepare(socket: &OwnedFd) -> io::Result<()> {
    set_cloexec(socket.as_raw_fd())?;
    set_nonblocking(socket.as_raw_fd())?;
    quiet_sigpipe(socket.as_raw_fd())
}

/// Takes the next connection, non-blocking. `WouldBlock` if there is none. When descriptors have run out (EMFILE,
/// ENFILE) the connection stays in the queue and the listener readable: let it rest until one is free.
pub(crate) fn accept(listener: RawFd) -> io::Result<OwnedFd> {
    loop {
        match accept_one(listener) {
            // The client gave up while it waited.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            result => return result,
        }
    }
}

fn accept_one(listener: RawFd) -> io::Result<OwnedFd> {
    let nowhere = std::ptr::null_mut();
    #[cfg(all(target_os = "linux", not(ptc_portable)))]
    {
        let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: without an address the kernel writes none; the new descriptor is adopted at once.
        let accepted = retry(|| unsafe {
            adopt(check(libc::accept4(
                listener,
                nowhere,
                std::ptr::null_mut(),
                flags,
            ))?)
        });
        match accepted {
            Err(error) if super::fd::is_missing(&error) => {}
            accepted => return accepted,
        }
    }
    // SAFETY: as above.
    let socket = retry(|| unsafe {
        adopt(check(libc::accept(
            listener,
            nowhere,
            std::ptr::null_mut(),
        ))?)
    })?;
    prepare(&socket)?;
    Ok(socket)
}

/// The user at the other end of a connection, as of the moment it connected. (POSIX has no way to ask; Linux has had
/// this one from the start, so it is used in a portable build as well.)
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn peer_uid(socket: RawFd) -> io::Result<u32> {
    let mut peer = libc::ucred {
        pid: 0,
        uid: u32::MAX,
        gid: u32::MAX,
    };
    let mut len = std::mem::size_of_val(&peer) as libc::socklen_t;
    // SAFETY: pointer and length describe `peer`, which outlives the call.
    check(unsafe {
        libc::getsockopt(
            socket,
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &mut len,
        )
    })?;
    Ok(peer.uid)
}

/// The user at the other end of a connection, as of the moment it connected.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn peer_uid(socket: RawFd) -> io::Result<u32> {
    let (mut uid, mut gid) = (libc::uid_t::MAX, libc::gid_t::MAX);
    // SAFETY: both pointers are to live variables.
    check(unsafe { libc::getpeereid(socket, &mut uid, &mut gid) })?;
    Ok(uid)
}

/// The effective user of this process, which is what peers see.
pub(crate) fn own_uid() -> u32 {
    // SAFETY: geteuid has no preconditions and cannot fail.
    unsafe { libc::geteuid() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::fd;
    use crate::sys::poll::{poll, PollFd};
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixStream;

    fn private() -> Dir {
        Dir::create(&crate::sys::dir::candidates(), "ptc-test-").unwrap()
    }

    #[test]
    fn a_connection_is_accepted_without_waiting_and_its_peer_known() {
        let dir = private();
        let listener = listen(&dir, "s").unwrap();
        let path = dir.path().join("s");
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let error = accept(listener.as_raw_fd()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);

        let client = UnixStream::connect(&path).unwrap();
        let mut fds = [PollFd::readable(listener.as_raw_fd())];
        assert_eq!(poll(&mut fds, None).unwrap(), 1);
        let server = accept(listener.as_raw_fd()).unwrap();
        assert_eq!(peer_uid(server.as_raw_fd()).unwrap(), own_uid());
        let error = fd::read(server.as_raw_fd(), &mut [0; 1]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        fd::send(server.as_raw_fd(), b"x").unwrap();
        assert_eq!(fd::recv(client.as_raw_fd(), &mut [0; 8]).unwrap(), 1);
        for socket in [&listener, &server] {
            // SAFETY: fcntl without an argument touches no memory of ours.
            let flags = unsafe { libc::fcntl(socket.as_raw_fd(), libc::F_GETFD) };
            assert_eq!(flags & libc::FD_CLOEXEC, libc::FD_CLOEXEC);
        }
        drop(client);
        dir.remove().unwrap();
    }

    #[test]
    fn many_clients_can_queue_up() {
        let dir = private();
        let listener = listen(&dir, "s").unwrap();
        let path = dir.path().join("s");
        let clients: Vec<_> = (0..100)
            .map(|_| {
                let client = stream_socket().unwrap();
                let address = address_of(&path).unwrap();
                let len = std::mem::size_of_val(&address) as libc::socklen_t;
                // SAFETY: pointer and length describe `address`, which outlives the call.
                check(unsafe {
                    libc::connect(client.as_raw_fd(), (&raw const address).cast(), len)
                })
                .unwrap();
                client
            })
            .collect();
        for _ in &clients {
            accept(listener.as_raw_fd()).unwrap();
        }
    }

    #[test]
    fn a_name_that_is_taken_or_too_long_is_told_with_its_path() {
        let dir = private();
        let _listener = listen(&dir, "s").unwrap();
        let error = listen(&dir, "s").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        assert!(error.to_string().contains(&*dir.path().to_string_lossy()));
        let error = listen(&dir, &"x".repeat(200)).unwrap_err();
        assert!(error.to_string().contains("at most"), "{error}");
    }
}
