use super::*;
use crate::sys::fd::close as close_fd;
use std::fs;
use std::os::unix::fs::{symlink, MetadataExt, PermissionsExt};
use std::sync::atomic::{AtomicBool, Ordering};

const PREFIX: &str = "ptc-";

/// A private place to make directories in.
fn base() -> Dir {
    Dir::create(&candidates(), "ptc-test-").unwrap()
}

fn create_in(base: &Dir) -> Dir {
    Dir::create(&[base.path().to_owned()], PREFIX).unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

fn entries(path: &Path) -> usize {
    fs::read_dir(path).unwrap().count()
}

/// Runs a test in a thread to which permission bits apply even if the tests run as root. Nothing of the process
/// changes: capabilities, and the umask after `unshare`, are the thread's own.
#[cfg(target_os = "linux")]
fn unprivileged(test: impl FnOnce() + Send) {
    const VERSION_3: u32 = 0x2008_0522;
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let header = [VERSION_3, 0];
            let none = [0u32; 6];
            // SAFETY: the two arrays have the layout of version 3 and outlive the call; unshare takes an integer.
            unsafe {
                let dropped = libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr());
                assert_eq!(dropped, 0);
                assert_eq!(libc::unshare(libc::CLONE_FS), 0);
            }
            test();
        });
        if let Err(panic) = thread.join() {
            std::panic::resume_unwind(panic);
        }
    });
}

#[test]
fn a_directory_is_private_short_and_gone_after_removal() {
    let base = base();
    let dir = create_in(&base);
    let path = dir.path().to_owned();
    assert_eq!(path.parent(), Some(base.path()));
    assert_eq!(path.file_name().unwrap().len(), PREFIX.len() + RANDOM_LEN);
    assert_eq!(mode(&path), 0o700);
    assert_ne!(create_in(&base).path(), path);
    dir.write_file("script.py", b"print()", 0o600).unwrap();
    dir.mkdir("__pycache__").unwrap();
    dir.write_file("__pycache__/x.pyc", b"\0\xff", 0o444)
        .unwrap();
    let cached = path.join("__pycache__/x.pyc");
    assert_eq!(fs::read(&cached).unwrap(), b"\0\xff");
    assert_eq!(mode(&cached), 0o444);
    assert_eq!(mode(&path.join("__pycache__")), 0o700);
    dir.remove().unwrap();
    assert!(!path.exists());
    assert_eq!(entries(base.path()), 0);
}

#[test]
fn a_dropped_directory_is_gone() {
    let base = base();
    let dir = create_in(&base);
    dir.write_file("x", b"x", 0o600).unwrap();
    drop(dir);
    assert_eq!(entries(base.path()), 0);
}

#[test]
#[cfg(target_os = "linux")]
fn the_umask_of_the_host_has_no_say() {
    unprivileged(|| {
        // SAFETY: takes an integer, and the thread has its own umask.
        unsafe { libc::umask(0o777) };
        let dir = base();
        assert_eq!(mode(dir.path()), 0o700);
        dir.mkdir("inner").unwrap();
        dir.write_file("inner/x", b"x", 0o640).unwrap();
        assert_eq!(mode(&dir.path().join("inner")), 0o700);
        assert_eq!(mode(&dir.path().join("inner/x")), 0o640);
        crate::sys::socket::listen(&dir, "s").unwrap();
        assert_eq!(mode(&dir.path().join("s")), 0o600);
        dir.remove().unwrap();
    });
}

#[test]
fn names_that_lead_out_and_links_in_the_way_are_refused() {
    let base = base();
    let dir = create_in(&base);
    for name in ["", "..", "../x", "/x", "a/../x", "."] {
        let error = dir.write_file(name, b"", 0o600).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{name:?}");
    }
    assert!(dir.write_file("a\0b", b"", 0o600).is_err());
    symlink(base.path().join("target"), dir.path().join("file")).unwrap();
    symlink(base.path(), dir.path().join("folder")).unwrap();
    let error = dir.write_file("file", b"", 0o600).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    assert!(error.to_string().contains(&*dir.path().to_string_lossy()));
    assert!(dir.write_file("folder/x", b"", 0o600).is_err());
    assert!(dir.mkdir("folder/x").is_err());
    assert_eq!(entries(base.path()), 1);
}

#[test]
fn places_that_will_not_do_are_passed_over_and_named() {
    let base = base();
    let path = |name: &str| base.path().join(name);
    for (name, bits) in [("open", 0o777), ("group", 0o770), ("sticky", 0o1777)] {
        base.mkdir(name).unwrap();
        fs::set_permissions(path(name), fs::Permissions::from_mode(bits)).unwrap();
    }
    base.write_file("file", b"", 0o600).unwrap();
    let long = path(&"x".repeat(300));
    let bad = [
        (PathBuf::from("relative"), "absolute"),
        (long, "too long"),
        (path("missing"), "No such file"),
        (path("file"), "Not a directory"),
        (path("open"), "mode 0777"),
        (path("group"), "mode 0770"),
    ];
    let places: Vec<_> = bad.iter().map(|(place, _)| place.clone()).collect();
    let message = Dir::create(&places, PREFIX).unwrap_err().to_string();
    for (place, fault) in &bad {
        let place = place.to_string_lossy();
        let at = message
            .find(&*place)
            .unwrap_or_else(|| panic!("{place} is not in {message}"));
        let told = message[at..].split(';').next().unwrap();
        assert!(told.contains(fault), "{told}");
    }
    assert!(message.contains("TMPDIR"));

    let mut places = places;
    places.push(path("sticky"));
    let dir = Dir::create(&places, PREFIX).unwrap();
    assert_eq!(dir.path().parent(), Some(&*path("sticky")));
}

#[test]
fn the_longest_path_that_is_accepted_takes_a_socket() {
    let base = base();
    let taken = 1 + PREFIX.len() + RANDOM_LEN + SOCKET_NAME_LEN;
    let fill = max_socket_path() - taken - base.path().as_os_str().len() - 1;
    let (fits, too_long) = ("x".repeat(fill), "x".repeat(fill + 1));
    for name in [&fits, &too_long] {
        base.mkdir(name).unwrap();
    }
    let dir = Dir::create(&[base.path().join(&fits)], PREFIX).unwrap();
    let _listener = crate::sys::socket::listen(&dir, "s").unwrap();
    std::os::unix::net::UnixStream::connect(dir.path().join("s")).unwrap();
    let error = Dir::create(&[base.path().join(&too_long)], PREFIX).unwrap_err();
    assert!(error.to_string().contains("too long"));
}

#[test]
#[cfg(target_os = "linux")]
fn an_unwritable_place_is_passed_over() {
    unprivileged(|| {
        let base = base();
        for (name, bits) in [("locked", 0o500), ("free", 0o700)] {
            base.mkdir(name).unwrap();
            let path = base.path().join(name);
            fs::set_permissions(path, fs::Permissions::from_mode(bits)).unwrap();
        }
        let places = ["locked", "free"].map(|name| base.path().join(name));
        let dir = Dir::create(&places, PREFIX).unwrap();
        assert!(dir.path().starts_with(&places[1]));
        let error = Dir::create(&places[..1], PREFIX).unwrap_err();
        assert!(error.to_string().contains("Permission denied"), "{error}");
    });
}

/// Needs the right to mount; without it there is nothing to look at.
#[test]
#[cfg(target_os = "linux")]
fn full_and_read_only_file_systems_are_passed_over_and_leave_nothing() {
    let base = base();
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            if !in_own_mount_namespace() {
                eprintln!("not permitted to mount: skipped");
                return;
            }
            for name in ["small", "roomy", "frozen"] {
                base.mkdir(name).unwrap();
            }
            let path = |name: &str| base.path().join(name);
            assert!(mount_tmpfs(&path("small"), 0, "size=64k,mode=700"));
            assert!(mount_tmpfs(&path("roomy"), 0, "size=256k,mode=700"));
            assert!(mount_tmpfs(&path("frozen"), libc::MS_RDONLY, "mode=700"));
            let bad = ["small", "frozen"].map(path);
            let message = Dir::create(&bad, PREFIX).unwrap_err().to_string();
            assert!(
                message.contains("full") && message.contains("Read-only"),
                "{message}"
            );
            assert_eq!(entries(&path("small")), 0);

            let dir = Dir::create(&[path("small"), path("roomy")], PREFIX).unwrap();
            let error = dir.write_file("x", &[7; 1 << 20], 0o600).unwrap_err();
            let message = error.to_string();
            assert!(
                message.contains("No space") && message.contains("roomy"),
                "{message}"
            );
            assert_eq!(entries(dir.path()), 0, "half a file was left");

            // A mount inside is not crossed but told.
            let outer = create_in(&base);
            outer.mkdir("mount").unwrap();
            let mounted = outer.path().join("mount");
            assert!(mount_tmpfs(&mounted, 0, "mode=700"));
            fs::write(mounted.join("precious"), b"x").unwrap();
            let error = outer.remove().unwrap_err();
            assert!(error.to_string().contains("\"mount\""), "{error}");
            assert!(mounted.join("precious").exists());
        });
        if let Err(panic) = thread.join() {
            std::panic::resume_unwind(panic);
        }
    });
    // The mounts have ended with the thread's namespace; what they covered has not.
    base.remove().unwrap();
}

#[cfg(target_os = "linux")]
fn in_own_mount_namespace() -> bool {
    let flags = libc::MS_REC | libc::MS_PRIVATE;
    let nothing = std::ptr::null();
    // SAFETY: the calling thread alone moves to the new namespace; the strings are NUL-terminated.
    unsafe {
        libc::unshare(libc::CLONE_NEWNS) == 0
            && libc::mount(nothing, c"/".as_ptr(), nothing, flags, nothing.cast()) == 0
    }
}

#[cfg(target_os = "linux")]
fn mount_tmpfs(on: &Path, flags: libc::c_ulong, options: &str) -> bool {
    let on = CString::new(on.as_os_str().as_bytes()).unwrap();
    let options = CString::new(options).unwrap();
    let kind = c"tmpfs".as_ptr();
    // SAFETY: all strings are NUL-terminated and outlive the call.
    unsafe { libc::mount(kind, on.as_ptr(), kind, flags, options.as_ptr().cast()) == 0 }
}

#[test]
fn removal_follows_no_link() {
    let base = base();
    base.mkdir("home").unwrap();
    base.write_file("home/precious", b"x", 0o600).unwrap();
    let home = base.path().join("home");
    let dir = create_in(&base);
    dir.mkdir("inner").unwrap();
    symlink(&home, dir.path().join("link")).unwrap();
    symlink(&home, dir.path().join("inner/link")).unwrap();
    fs::hard_link(home.join("precious"), dir.path().join("hard")).unwrap();
    dir.remove().unwrap();
    assert!(home.join("precious").exists());
    assert_eq!(entries(base.path()), 1);
}

#[test]
#[cfg(target_os = "linux")]
fn removal_gets_past_missing_permissions() {
    unprivileged(|| {
        let base = base();
        let dir = create_in(&base);
        for name in ["a", "a/b", "a/b/c", "a/d", "e", "readable"] {
            dir.mkdir(name).unwrap();
        }
        dir.write_file("a/b/c/x", b"x", 0o000).unwrap();
        dir.write_file("readable/x", b"x", 0o000).unwrap();
        let readable = dir.path().join("readable");
        fs::set_permissions(readable, fs::Permissions::from_mode(0o500)).unwrap();
        for name in ["a/b/c", "a/b", "a/d", "a", "e", ""] {
            let path = dir.path().join(name);
            fs::set_permissions(path, fs::Permissions::from_mode(0o000)).unwrap();
        }
        dir.remove().unwrap();
        assert_eq!(entries(base.path()), 0);
    });
}

#[test]
fn a_tree_deeper_than_any_path_is_removed() {
    let base = base();
    let dir = create_in(&base);
    let mut folder = open_at(dir.fd.as_fd(), c".", OPEN_DIR).unwrap();
    for _ in 0..1200 {
        make_dir(folder.as_fd(), c"deep").unwrap();
        make_dir(folder.as_fd(), c"beside").unwrap();
        folder = open_at(folder.as_fd(), c"deep", OPEN_DIR).unwrap();
    }
    close_fd(folder).unwrap();
    dir.remove_within(Duration::MAX).unwrap();
    assert_eq!(entries(base.path()), 0);
}

#[test]
fn many_files_are_removed() {
    let base = base();
    let dir = create_in(&base);
    dir.mkdir("inner").unwrap();
    for number in 0..1000 {
        dir.write_file(&format!("inner/{number}"), b"", 0o600)
            .unwrap();
    }
    dir.remove_within(Duration::MAX).unwrap();
    assert_eq!(entries(base.path()), 0);
}

#[test]
fn what_no_time_is_left_for_is_told_and_swept_later() {
    let base = base();
    let dir = create_in(&base);
    let path = dir.path().to_owned();
    dir.write_file("x", b"x", 0o600).unwrap();
    let error = dir.remove_within(Duration::ZERO).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    let message = error.to_string();
    assert!(message.contains(&*path.to_string_lossy()) && message.contains("\"x\""));
    assert_eq!(sweep_stale(base.path(), PREFIX, Duration::MAX).unwrap(), 1);
    assert!(!path.exists());
}

#[test]
fn a_directory_that_its_script_deleted_moved_or_replaced_is_no_error() {
    let base = base();
    let deleted = create_in(&base);
    fs::remove_dir_all(deleted.path()).unwrap();
    deleted.remove().unwrap();

    let moved = create_in(&base);
    moved.write_file("x", b"x", 0o600).unwrap();
    let elsewhere = base.path().join("elsewhere");
    fs::rename(moved.path(), &elsewhere).unwrap();
    symlink(&elsewhere, moved.path()).unwrap();
    moved.remove().unwrap();
    assert_eq!(entries(&elsewhere), 0);
    assert_eq!(entries(base.path()), 1);
}

#[test]
fn a_sweep_spares_the_living_the_young_and_the_alike() {
    let base = base();
    let alive = create_in(&base);
    let unfinished = random_name(PREFIX, UNFINISHED).unwrap();
    let dead = random_name(PREFIX, "").unwrap();
    let [linked, file] = [(); 2].map(|()| random_name(PREFIX, "").unwrap());
    for name in [&unfinished, &dead] {
        base.mkdir(name.to_str().unwrap()).unwrap();
    }
    base.mkdir("ptc-shorter").unwrap();
    base.mkdir("ptc-UPPERCASE1234").unwrap();
    base.mkdir("home").unwrap();
    let path = |name: &CStr| base.path().join(name.to_str().unwrap());
    symlink(base.path().join("home"), path(&linked)).unwrap();
    fs::write(path(&file), b"").unwrap();

    let sweep = || sweep_stale(base.path(), PREFIX, Duration::MAX).unwrap();
    assert_eq!(sweep(), 1);
    assert!(!path(&dead).exists());
    assert_eq!(entries(base.path()), 7);
    assert!(alive.path().exists());

    let folder = fs::File::open(path(&unfinished)).unwrap();
    folder.set_modified(std::time::UNIX_EPOCH).unwrap();
    lock_now(folder.as_fd()).unwrap();
    assert_eq!(sweep(), 0, "old, but its maker has come back");
    drop(folder);
    assert_eq!(sweep(), 1);
    assert!(!path(&unfinished).exists());
}

#[test]
fn other_users_directories_are_not_touched() {
    let base = base();
    let name = random_name(PREFIX, "").unwrap();
    let name = name.to_str().unwrap();
    base.mkdir(name).unwrap();
    let path = base.path().join(name);
    if std::os::unix::fs::chown(&path, Some(own_uid() + 1), None).is_err() {
        eprintln!("not permitted to give a directory away: skipped");
        return;
    }
    assert_eq!(sweep_stale(base.path(), PREFIX, Duration::MAX).unwrap(), 0);
    assert!(path.exists());
}

#[test]
fn making_and_sweeping_at_once_loses_nothing() {
    let base = base();
    let done = AtomicBool::new(false);
    let places = [base.path().to_owned()];
    std::thread::scope(|scope| {
        let sweeper = scope.spawn(|| {
            let mut swept = 0;
            while !done.load(Ordering::SeqCst) {
                swept += sweep_stale(base.path(), PREFIX, Duration::MAX).unwrap();
            }
            swept
        });
        let makers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let dir = Dir::create(&places, PREFIX).unwrap();
                        dir.write_file("x", b"x", 0o600).unwrap();
                        let found = fs::metadata(dir.path()).unwrap();
                        assert_eq!(found.ino(), stat(dir.fd.as_fd()).unwrap().st_ino);
                        dir.remove().unwrap();
                    }
                })
            })
            .collect();
        let results: Vec<_> = makers.into_iter().map(|maker| maker.join()).collect();
        done.store(true, Ordering::SeqCst);
        assert_eq!(sweeper.join().unwrap(), 0, "a live directory was swept");
        assert!(results.iter().all(Result::is_ok));
    });
    assert_eq!(entries(base.path()), 0);
}

const HELPER_PLACE: &str = "PTC_TEST_DIR_HELPER";

/// Not a test: the process that [`the_directory_of_a_killed_process_is_swept_and_only_then`] kills.
#[test]
#[ignore = "run by another test"]
fn helper_that_makes_a_directory_and_is_killed() {
    let Some(place) = std::env::var_os(HELPER_PLACE) else {
        return;
    };
    let _dir = Dir::create(&[place.into()], PREFIX).unwrap();
    eprintln!("made");
    let _ = io::Read::read(&mut io::stdin(), &mut [0]);
}

#[test]
fn the_directory_of_a_killed_process_is_swept_and_only_then() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    let base = base();
    let name = "sys::dir::tests::helper_that_makes_a_directory_and_is_killed";
    let mut helper = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--ignored", "--nocapture"])
        .env(HELPER_PLACE, base.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stderr = BufReader::new(helper.stderr.take().unwrap());
    assert!(stderr.lines().any(|line| line.unwrap().contains("made")));
    let sweep = || sweep_stale(base.path(), PREFIX, Duration::MAX).unwrap();
    assert_eq!(sweep(), 0);
    assert_eq!(entries(base.path()), 1);
    helper.kill().unwrap();
    helper.wait().unwrap();
    assert_eq!(sweep(), 1);
    assert_eq!(entries(base.path()), 0);
}
