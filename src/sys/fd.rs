//! Descriptors and the plain calls on them.
//!
//! Every descriptor made here is close-on-exec and above 2: a host that has closed its standard streams must not find
//! itself printing into a socket of ours.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use libc::{c_int, c_void};

/// Turns the -1 of a system call into the error it left in `errno`.
pub(super) fn check(result: c_int) -> io::Result<c_int> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        value => Ok(value),
    }
}

/// As [`check`], for calls that answer with a number of bytes.
fn check_len(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Repeats a call for as long as a signal handler of the host interrupts it. Not for calls with a timeout.
pub(super) fn retry<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Whether an error says that the kernel, or a seccomp filter that answers for it, does not have this call or flag.
#[cfg_attr(ptc_portable, allow(dead_code))]
pub(super) fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ENOSYS | libc::EPERM | libc::EINVAL | libc::EOPNOTSUPP)
    )
}

/// Takes charge of a descriptor that a system call has just returned, and moves it above the standard streams.
///
/// # Safety
/// `raw` is open and nothing else owns it.
pub(super) unsafe fn adopt(raw: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the caller hands over the only claim to an open descriptor.
    let fd = unsafe { OwnedFd::from_raw_fd(raw) };
    lift(fd)
}

fn lift(fd: OwnedFd) -> io::Result<OwnedFd> {
    match fd.as_raw_fd() {
        0..=2 => dup_high(fd.as_raw_fd()),
        _ => Ok(fd),
    }
}

/// A pair of descriptors out of a call that fills an array.
fn make_pair(call: impl FnOnce(*mut c_int) -> c_int) -> io::Result<(OwnedFd, OwnedFd)> {
    let mut fds = [-1; 2];
    check(call(fds.as_mut_ptr()))?;
    // SAFETY: the call succeeded, so both are open, new and ours alone.
    let (first, second) = unsafe { (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])) };
    Ok((lift(first)?, lift(second)?))
}

/// A pipe: (read end, write end), both blocking.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    #[cfg(all(target_os = "linux", not(ptc_portable)))]
    {
        // SAFETY: `make_pair` passes room for two descriptors.
        let made = make_pair(|fds| unsafe { libc::pipe2(fds, libc::O_CLOEXEC) });
        match made {
            Err(error) if is_missing(&error) => {}
            made => return made,
        }
    }
    // SAFETY: as above.
    let pair = make_pair(|fds| unsafe { libc::pipe(fds) })?;
    set_cloexec(pair.0.as_raw_fd())?;
    set_cloexec(pair.1.as_raw_fd())?;
    Ok(pair)
}

/// A pair of connected stream sockets, both blocking; [`set_nonblocking`] concerns one end only.
pub(crate) fn socketpair() -> io::Result<(OwnedFd, OwnedFd)> {
    #[cfg(all(target_os = "linux", not(ptc_portable)))]
    {
        let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
        // SAFETY: `make_pair` passes room for two descriptors.
        let made = make_pair(|fds| unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, fds) });
        match made {
            Err(error) if is_missing(&error) => {}
            made => return made,
        }
    }
    // SAFETY: as above.
    let pair =
        make_pair(|fds| unsafe { libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM, 0, fds) })?;
    for fd in [&pair.0, &pair.1] {
        set_cloexec(fd.as_raw_fd())?;
        quiet_sigpipe(fd.as_raw_fd())?;
    }
    Ok(pair)
}

/// Sets close-on-exec, for systems that cannot do it while the descriptor is made.
pub(super) fn set_cloexec(fd: RawFd) -> io::Result<()> {
    // SAFETY: fcntl with an integer argument touches no memory of ours.
    check(unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) }).map(drop)
}

/// Keeps a socket from raising SIGPIPE where `send` has no flag for that.
pub(super) fn quiet_sigpipe(fd: RawFd) -> io::Result<()> {
    #[cfg(target_vendor = "apple")]
    {
        let on: c_int = 1;
        // SAFETY: the pointer and length describe `on`, which outlives the call.
        check(unsafe {
            libc::setsockopt(
                fd,
                libc::SOL_SOCKET,
                libc::SO_NOSIGPIPE,
                (&raw const on).cast(),
                std::mem::size_of_val(&on) as libc::socklen_t,
            )
        })?;
    }
    let _ = fd;
    Ok(())
}

/// Makes reads and writes return [`io::ErrorKind::WouldBlock`] instead of waiting. The flag belongs to the open file
/// description: never for a descriptor that the host or the script shares.
pub(crate) fn set_nonblocking(fd: RawFd) -> io::Result<()> {
    // SAFETY: fcntl with an integer argument touches no memory of ours.
    let flags = check(unsafe { libc::fcntl(fd, libc::F_GETFL) })?;
    if flags & libc::O_NONBLOCK != 0 {
        return Ok(());
    }
    // SAFETY: as above.
    check(unsafe { libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK) }).map(drop)
}

/// The lowest number that is out of reach of the child's `dup2` onto 0 to 3.
const HIGH: RawFd = 10;

/// A close-on-exec duplicate that the child's `dup2` cannot reach.
pub(crate) fn dup_high(fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: fcntl with an integer argument touches no memory of ours.
    let copied = check(unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, HIGH) });
    let raw = copied.map_err(|error| match error.raw_os_error() {
        // So fcntl(2) says that `HIGH` itself is over RLIMIT_NOFILE.
        Some(libc::EINVAL) => io::Error::from_raw_os_error(libc::EMFILE),
        _ => error,
    })?;
    // SAFETY: fcntl succeeded, so the duplicate is open, new and ours alone.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// The descriptor itself if the child's `dup2` cannot reach it, else such a duplicate in its place.
pub(super) fn moved_high(fd: OwnedFd) -> io::Result<OwnedFd> {
    match fd.as_raw_fd() {
        HIGH.. => Ok(fd),
        low => dup_high(low),
    }
}

/// As [`pipe`], with both ends out of reach of the child's `dup2`.
pub(super) fn high_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = pipe()?;
    Ok((moved_high(reader)?, moved_high(writer)?))
}

/// `/dev/null`, open for reading, out of reach of the child's `dup2`.
pub(super) fn dev_null() -> io::Result<OwnedFd> {
    moved_high(std::fs::File::open("/dev/null")?.into())
}

/// Reads what is there, at most `buffer`; 0 is the end. Works on pipes and sockets.
pub(crate) fn read(fd: RawFd, buffer: &mut [u8]) -> io::Result<usize> {
    let (start, len) = (buffer.as_mut_ptr().cast::<c_void>(), buffer.len());
    // SAFETY: pointer and length describe `buffer`, borrowed mutably for the whole call.
    retry(|| check_len(unsafe { libc::read(fd, start, len) }))
}

/// Receives from a socket without waiting; 0 is the end, [`io::ErrorKind::WouldBlock`] nothing yet. There is no room
/// for control data, so the kernel closes descriptors that the peer tries to push into this process.
pub(crate) fn recv(fd: RawFd, buffer: &mut [u8]) -> io::Result<usize> {
    recv_with(fd, buffer, libc::MSG_DONTWAIT)
}

fn recv_with(fd: RawFd, buffer: &mut [u8], flags: c_int) -> io::Result<usize> {
    let (start, len) = (buffer.as_mut_ptr().cast::<c_void>(), buffer.len());
    // SAFETY: pointer and length describe `buffer`, borrowed mutably for the whole call.
    retry(|| check_len(unsafe { libc::recv(fd, start, len, flags) }))
}

/// Sends as much of `bytes` as fits without waiting. A peer that has gone is an error of kind `BrokenPipe`, never
/// SIGPIPE, provided that the socket was made in this module or in `socket`.
pub(crate) fn send(fd: RawFd, bytes: &[u8]) -> io::Result<usize> {
    #[cfg(not(target_vendor = "apple"))]
    const FLAGS: c_int = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    #[cfg(target_vendor = "apple")]
    const FLAGS: c_int = libc::MSG_DONTWAIT;
    let (start, len) = (bytes.as_ptr().cast::<c_void>(), bytes.len());
    // SAFETY: pointer and length describe `bytes`, borrowed for the whole call.
    retry(|| check_len(unsafe { libc::send(fd, start, len, FLAGS) }))
}

/// Whether a socket holds bytes that nobody has received yet. The end of the stream is none.
pub(crate) fn peek_nonempty(fd: RawFd) -> bool {
    let flags = libc::MSG_DONTWAIT | libc::MSG_PEEK;
    matches!(recv_with(fd, &mut [0], flags), Ok(1))
}

/// Ends both directions of a connection at once, whoever else holds a copy of the descriptor.
pub(crate) fn shutdown(fd: RawFd) -> io::Result<()> {
    // SAFETY: shutdown takes two integers.
    match check(unsafe { libc::shutdown(fd, libc::SHUT_RDWR) }) {
        Err(error) if error.raw_os_error() != Some(libc::ENOTCONN) => Err(error),
        _ => Ok(()),
    }
}

/// Ends the sending half of a connection: the peer reads an end of file for ever.
pub(crate) fn shutdown_write(fd: RawFd) -> io::Result<()> {
    // SAFETY: shutdown takes no memory of ours; a wrong descriptor is an error.
    check(unsafe { libc::shutdown(fd, libc::SHUT_WR) }).map(drop)
}

/// The first place of `byte` in `haystack`. The C library's search is several times faster than a loop.
pub(crate) fn find_byte(haystack: &[u8], byte: u8) -> Option<usize> {
    // SAFETY: the pointer and the length are those of one live slice.
    let found = unsafe { libc::memchr(haystack.as_ptr().cast(), i32::from(byte), haystack.len()) };
    (!found.is_null()).then(|| found as usize - haystack.as_ptr() as usize)
}

/// Closes and tells what only closing tells: a write that failed late (NFS, quotas).
pub(super) fn close(fd: OwnedFd) -> io::Result<()> {
    use std::os::fd::IntoRawFd;
    // SAFETY: `into_raw_fd` gave up the ownership, so this is the one close.
    match check(unsafe { libc::close(fd.into_raw_fd()) }) {
        // The descriptor is gone even then; a second close could hit a stranger's.
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
        result => result.map(drop),
    }
}

/// Writes all of `bytes` to a file, over short writes and interruptions.
pub(super) fn write_all(fd: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let (start, len) = (bytes.as_ptr().cast::<c_void>(), bytes.len());
        // SAFETY: pointer and length describe `bytes`, borrowed for the whole call.
        let written = retry(|| check_len(unsafe { libc::write(fd.as_raw_fd(), start, len) }))?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        bytes = &bytes[written..];
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_cloexec(fd: &OwnedFd) -> bool {
        // SAFETY: fcntl with an integer argument touches no memory of ours.
        unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFD) & libc::FD_CLOEXEC != 0 }
    }

    #[test]
    fn every_descriptor_is_close_on_exec_and_above_the_standard_streams() {
        let (reader, writer) = pipe().unwrap();
        let (left, right) = socketpair().unwrap();
        let high = dup_high(reader.as_raw_fd()).unwrap();
        assert!(high.as_raw_fd() >= 10);
        for fd in [&reader, &writer, &left, &right, &high] {
            assert!(is_cloexec(fd), "{fd:?}");
            assert!(fd.as_raw_fd() > 2, "{fd:?}");
        }
    }

    #[test]
    fn a_pipe_carries_bytes_and_then_ends() {
        use std::os::fd::AsFd;
        let (reader, writer) = pipe().unwrap();
        write_all(writer.as_fd(), b"abc").unwrap();
        close(writer).unwrap();
        let mut buffer = [0; 8];
        assert_eq!(read(reader.as_raw_fd(), &mut buffer).unwrap(), 3);
        assert_eq!(&buffer[..3], b"abc");
        assert_eq!(read(reader.as_raw_fd(), &mut buffer).unwrap(), 0);
    }

    #[test]
    fn a_nonblocking_pipe_says_that_nothing_is_there() {
        let (reader, _writer) = pipe().unwrap();
        set_nonblocking(reader.as_raw_fd()).unwrap();
        set_nonblocking(reader.as_raw_fd()).unwrap();
        let error = read(reader.as_raw_fd(), &mut [0; 8]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn recv_and_send_never_wait_even_on_a_blocking_socket() {
        let (left, right) = socketpair().unwrap();
        let error = recv(left.as_raw_fd(), &mut [0; 8]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        let block = [7; 65536];
        let error = loop {
            if let Err(error) = send(right.as_raw_fd(), &block) {
                break error;
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn a_peer_that_has_gone_is_an_error_and_no_signal() {
        let (left, right) = socketpair().unwrap();
        drop(right);
        // A blocked signal stays pending even where the process ignores it, and SIGPIPE goes to the sending thread.
        let mut set = std::mem::MaybeUninit::uninit();
        // SAFETY: sigemptyset initialises the set that the other calls read; the mask is this test's own thread's.
        unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            libc::sigaddset(set.as_mut_ptr(), libc::SIGPIPE);
            libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
        }
        let error = send(left.as_raw_fd(), b"x").unwrap_err();
        // SAFETY: sigpending writes the set that sigismember then reads.
        let raised = unsafe {
            libc::sigpending(set.as_mut_ptr());
            libc::sigismember(set.as_ptr(), libc::SIGPIPE)
        };
        assert_eq!(raised, 0);
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn peeking_takes_nothing_and_tells_bytes_from_the_end() {
        let (left, right) = socketpair().unwrap();
        assert!(!peek_nonempty(left.as_raw_fd()));
        send(right.as_raw_fd(), b"x").unwrap();
        assert!(peek_nonempty(left.as_raw_fd()));
        assert_eq!(recv(left.as_raw_fd(), &mut [0; 8]).unwrap(), 1);
        drop(right);
        assert!(!peek_nonempty(left.as_raw_fd()));
    }

    #[test]
    fn shutdown_reaches_the_peer_although_a_copy_is_open() {
        let (left, right) = socketpair().unwrap();
        let _copy = dup_high(left.as_raw_fd()).unwrap();
        shutdown(left.as_raw_fd()).unwrap();
        shutdown(left.as_raw_fd()).unwrap();
        assert_eq!(recv(right.as_raw_fd(), &mut [0; 8]).unwrap(), 0);
    }

    #[test]
    fn descriptors_pushed_by_a_peer_are_dropped() {
        let (left, right) = socketpair().unwrap();
        let (gift_reader, gift_writer) = pipe().unwrap();
        send_with_descriptor(&right, &gift_writer);
        drop(gift_writer);
        assert_eq!(recv(left.as_raw_fd(), &mut [0; 8]).unwrap(), 1);
        // Nobody holds the write end any more: the read end is at its end instead of empty.
        set_nonblocking(gift_reader.as_raw_fd()).unwrap();
        assert_eq!(read(gift_reader.as_raw_fd(), &mut [0; 8]).unwrap(), 0);
    }

    fn send_with_descriptor(socket: &OwnedFd, gift: &OwnedFd) {
        let mut byte = 1u8;
        let mut part = libc::iovec {
            iov_base: (&raw mut byte).cast(),
            iov_len: 1,
        };
        let mut control = [0u64; 8];
        // SAFETY: all zero is a valid msghdr; the pointers set below outlive the call; CMSG_* stay inside `control`,
        // which is aligned for a cmsghdr and has room for one descriptor.
        let sent = unsafe {
            let mut message: libc::msghdr = std::mem::zeroed();
            message.msg_iov = &raw mut part;
            message.msg_iovlen = 1;
            message.msg_control = control.as_mut_ptr().cast();
            message.msg_controllen = libc::CMSG_SPACE(4) as _;
            let header = libc::CMSG_FIRSTHDR(&message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(4) as _;
            libc::CMSG_DATA(header)
                .cast::<c_int>()
                .write_unaligned(gift.as_raw_fd());
            libc::sendmsg(socket.as_raw_fd(), &message, 0)
        };
        assert_eq!(sent, 1);
    }
}
