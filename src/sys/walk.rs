//! Where a path leads, found out by walking from descriptor to descriptor.
//!
//! Links are resolved by the walk itself and never by the kernel behind its back, so that what it says of a path (which
//! folder it ends in, by which true names) still holds when the file is opened, whatever somebody exchanges meanwhile.
//! A link of `/proc` that leads to something without a name is no way.

use std::collections::VecDeque;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use super::at;
use super::entries::Entries;
use super::random;

/// As many links as Linux follows in one path.
const MOST_LINKS: usize = 40;

/// What a name stands for; a link never, since the walk has followed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Folder,
    /// A device, a socket, a fifo.
    Special,
}

impl Kind {
    fn of(stat: &libc::stat) -> Kind {
        match stat.st_mode & libc::S_IFMT {
            libc::S_IFREG => Kind::File,
            libc::S_IFDIR => Kind::Folder,
            _ => Kind::Special,
        }
    }
}

/// The place that a path leads to, whether there is anything or not.
#[derive(Debug)]
pub(crate) struct Spot {
    /// The deepest folder of the way that exists.
    folder: OwnedFd,
    /// Folders between it and the file, which do not exist.
    missing: Vec<CString>,
    name: CString,
    path: PathBuf,
}

/// A walk that came to no end.
#[derive(Debug)]
pub(crate) struct Stuck {
    /// How far it came, with what was left to go.
    pub(crate) at: PathBuf,
    pub(crate) error: io::Error,
}

/// Follows `path`, which must be absolute.
pub(crate) fn walk(path: &Path) -> Result<Spot, Stuck> {
    let mut walk = Walk {
        folders: Vec::new(),
        ahead: parts(path),
        links: 0,
    };
    walk.run().map_err(|error| Stuck {
        at: walk.position(),
        error,
    })
}

fn parts(path: &Path) -> VecDeque<OsString> {
    let parts = path.components().filter(|part| *part != Component::CurDir);
    parts.map(|part| part.as_os_str().to_owned()).collect()
}

struct Walk {
    /// From the root on, each with its name.
    folders: Vec<(OsString, OwnedFd)>,
    ahead: VecDeque<OsString>,
    links: usize,
}

impl Walk {
    fn run(&mut self) -> io::Result<Spot> {
        while let Some(part) = self.ahead.front().cloned() {
            if part == "/" {
                self.folders = vec![(part, at::root()?)];
                self.ahead.pop_front();
            } else if part == ".." {
                // The root is its own parent.
                self.folders
                    .truncate(self.folders.len().saturating_sub(1).max(1));
                self.ahead.pop_front();
            } else if let Some(spot) = self.step(&part)? {
                return Ok(spot);
            }
        }
        self.spot(Vec::new(), c".".to_owned())
    }

    /// Goes on by one name; the spot where that is the last one or does not exist.
    fn step(&mut self, part: &OsStr) -> io::Result<Option<Spot>> {
        let name = CString::new(part.as_bytes())?;
        let stat = match at::stat_link(self.here()?, &name) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return self.end_of_way().map(Some),
            stat => stat?,
        };
        if stat.st_mode & libc::S_IFMT == libc::S_IFLNK {
            self.follow(&name)?;
        } else if self.ahead.len() > 1 {
            // Whatever else it is by now, it is no link that would be followed.
            self.enter(part, &name)?;
        } else {
            return self.spot(Vec::new(), name).map(Some);
        }
        Ok(None)
    }

    fn follow(&mut self, name: &CStr) -> io::Result<()> {
        self.links += 1;
        if self.links > MOST_LINKS {
            return Err(io::Error::from_raw_os_error(libc::ELOOP));
        }
        let target = at::read_link(self.here()?, name)?;
        self.ahead.pop_front();
        for part in parts(Path::new(&target)).into_iter().rev() {
            self.ahead.push_front(part);
        }
        Ok(())
    }

    fn enter(&mut self, part: &OsStr, name: &CStr) -> io::Result<()> {
        let flags = at::OPEN_PARENT | libc::O_NOFOLLOW;
        let fd = at::open(self.here()?, name, flags, 0)?;
        self.folders.push((part.to_owned(), fd));
        self.ahead.pop_front();
        Ok(())
    }

    /// What is ahead does not exist.
    fn end_of_way(&self) -> io::Result<Spot> {
        if self.ahead.iter().any(|part| part == "..") {
            return Err(io::Error::from_raw_os_error(libc::ENOENT));
        }
        let ahead = self.ahead.iter().map(|part| CString::new(part.as_bytes()));
        let mut missing = ahead.collect::<Result<Vec<CString>, _>>()?;
        let name = missing.pop().unwrap_or_default();
        self.spot(missing, name)
    }

    fn spot(&self, missing: Vec<CString>, name: CString) -> io::Result<Spot> {
        Ok(Spot {
            folder: self.here()?.try_clone_to_owned()?,
            missing,
            name,
            path: self.position(),
        })
    }

    fn here(&self) -> io::Result<BorrowedFd<'_>> {
        let last = self.folders.last().map(|(_, fd)| fd.as_fd());
        last.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the path is not absolute"))
    }

    fn position(&self) -> PathBuf {
        let walked = self.folders.iter().map(|(name, _)| name);
        walked.chain(&self.ahead).collect()
    }
}

impl Spot {
    /// Absolute, by true names, without links.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// `None`: there is nothing.
    pub(crate) fn kind(&self) -> io::Result<Option<Kind>> {
        Ok(self.stat()?.map(|stat| Kind::of(&stat)))
    }

    fn stat(&self) -> io::Result<Option<libc::stat>> {
        if !self.missing.is_empty() {
            return Ok(None);
        }
        match at::stat_link(self.folder.as_fd(), &self.name) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            stat => stat.map(Some),
        }
    }

    /// Whether already the folder that would hold it does not exist.
    pub(crate) fn folder_is_missing(&self) -> bool {
        !self.missing.is_empty()
    }

    /// Opens it for reading, without waiting for anybody where it is a fifo.
    pub(crate) fn open(&self) -> io::Result<File> {
        let flags = libc::O_RDONLY | libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC;
        self.open_with(flags).map(File::from)
    }

    /// Opens it as a folder that can be listed.
    pub(crate) fn open_folder(&self) -> io::Result<OwnedFd> {
        self.open_with(at::OPEN_DIR)
    }

    fn open_with(&self, flags: i32) -> io::Result<OwnedFd> {
        if !self.missing.is_empty() {
            return Err(io::Error::from_raw_os_error(libc::ENOENT));
        }
        at::open(self.folder.as_fd(), &self.name, flags, 0)
    }

    /// The names in the deepest folder of the way that exists, at most `most`.
    pub(crate) fn neighbours(&self, most: usize) -> io::Result<Vec<OsString>> {
        let mut entries = Entries::open(self.folder.as_fd())?;
        let mut names = Vec::new();
        while let (Some(name), true) = (entries.next(), names.len() < most) {
            names.push(OsStr::from_bytes(name.to_bytes()).to_owned());
        }
        Ok(names)
    }

    /// Makes the folders of the way that are missing. Whether there were any.
    pub(crate) fn make_folders(&mut self) -> io::Result<bool> {
        let any = !self.missing.is_empty();
        for name in std::mem::take(&mut self.missing) {
            match at::mkdir(self.folder.as_fd(), &name, 0o777) {
                // Somebody else was faster.
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                made => made?,
            }
            let flags = at::OPEN_PARENT | libc::O_NOFOLLOW;
            self.folder = at::open(self.folder.as_fd(), &name, flags, 0)?;
        }
        Ok(any)
    }

    /// Writes `bytes` into a file beside it, ready to take its place. A file that is there already passes on its mode
    /// and, as far as that is permitted, its owner. The folders of the way must exist.
    pub(crate) fn stage(&self, bytes: &[u8]) -> io::Result<Staged<'_>> {
        self.stage_like(self, bytes)
    }

    /// As [`Spot::stage`], with the mode and the owner of the file at `model`.
    pub(crate) fn stage_like(&self, model: &Spot, bytes: &[u8]) -> io::Result<Staged<'_>> {
        let mut name = b".ptc-".to_vec();
        name.extend_from_slice(random::hex128()?.as_bytes());
        let name = CString::new(name)?;
        let before = model.stat()?;
        let flags =
            libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        // Nobody reads what is to be private before it has its mode.
        let mode = before.map_or(0o666, |_| 0o600);
        let mut file = File::from(at::open(self.folder.as_fd(), &name, flags, mode)?);
        let staged = Staged {
            spot: self,
            name: Some(name),
        };
        if let Some(before) = before {
            // Only root can give a file away; the content matters more.
            let _ = at::set_owner(file.as_fd(), before.st_uid, before.st_gid);
            // The type is narrower on some systems.
            #[allow(clippy::unnecessary_cast)]
            at::set_mode(file.as_fd(), before.st_mode as u32 & 0o7777)?;
        }
        file.write_all(bytes)?;
        file.sync_all()?;
        Ok(staged)
    }

    /// Removes the file.
    pub(crate) fn remove(&self) -> io::Result<()> {
        at::unlink(self.folder.as_fd(), &self.name, 0)
    }
}

/// A file that waits to take its place. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct Staged<'a> {
    spot: &'a Spot,
    name: Option<CString>,
}

impl Staged<'_> {
    /// Puts it where it belongs, at once and whole, and makes that last.
    pub(crate) fn commit(mut self) -> io::Result<()> {
        let folder = self.spot.folder.as_fd();
        if let Some(name) = &self.name {
            at::rename(folder, name, folder, &self.spot.name)?;
        }
        self.name = None;
        // Not every file system can sync a folder; the file itself is safe.
        if let Ok(folder) = at::open(folder, c".", at::OPEN_DIR, 0) {
            let _ = File::from(folder).sync_all();
        }
        Ok(())
    }
}

impl Drop for Staged<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            let _ = at::unlink(self.spot.folder.as_fd(), name, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{symlink, MetadataExt, PermissionsExt};

    struct Folder(PathBuf);

    impl Folder {
        fn new() -> Self {
            let name = format!("walk-{}", random::hex128().unwrap());
            let path = std::fs::canonicalize(std::env::temp_dir())
                .unwrap()
                .join(name);
            std::fs::create_dir(&path).unwrap();
            Folder(path)
        }

        fn at(&self, path: &str) -> PathBuf {
            self.0.join(path)
        }

        fn names(&self) -> Vec<OsString> {
            let entries = std::fs::read_dir(&self.0).unwrap();
            let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name()).collect();
            names.sort();
            names
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            std::fs::remove_dir_all(&self.0).unwrap();
        }
    }

    #[test]
    fn links_and_dots_lead_where_the_kernel_leads() {
        let folder = Folder::new();
        std::fs::create_dir_all(folder.at("a/b")).unwrap();
        std::fs::write(folder.at("a/b/file"), "x").unwrap();
        symlink("a/b", folder.at("short")).unwrap();
        symlink(folder.at("a"), folder.at("a/b/long")).unwrap();
        symlink("../short/file", folder.at("a/file")).unwrap();
        for path in [
            "a/b/file",
            "a/./b//file",
            "short/file",
            "short/../b/file",
            "short/long/b/file",
            "a/file",
            "a/b/../../short/long/file",
        ] {
            let spot = walk(&folder.at(path)).unwrap();
            assert_eq!(spot.path(), folder.at("a/b/file"), "{path}");
            assert_eq!(spot.kind().unwrap(), Some(Kind::File));
            assert_eq!(io::read_to_string(spot.open().unwrap()).unwrap(), "x");
        }
        for (path, expected) in [("short", "a/b"), ("a/b/..", "a"), ("a/b/long/", "a")] {
            let spot = walk(&folder.at(path)).unwrap();
            assert_eq!(spot.path(), folder.at(expected), "{path}");
            assert_eq!(spot.kind().unwrap(), Some(Kind::Folder));
            spot.open_folder().unwrap();
        }
        assert_eq!(walk(Path::new("/../..")).unwrap().path(), Path::new("/"));
    }

    #[test]
    fn a_way_that_has_no_end_says_where_it_broke_off() {
        let folder = Folder::new();
        symlink("loop", folder.at("loop")).unwrap();
        std::fs::write(folder.at("file"), "").unwrap();
        let stuck = |path: &str| walk(&folder.at(path)).unwrap_err();
        assert_eq!(stuck("loop").error.raw_os_error(), Some(libc::ELOOP));
        assert_eq!(stuck("file/x").error.raw_os_error(), Some(libc::ENOTDIR));
        assert_eq!(stuck("file/x").at, folder.at("file/x"));
        assert_eq!(stuck("none/../file").error.kind(), io::ErrorKind::NotFound);
        assert!(walk(Path::new("relative")).is_err());
    }

    #[test]
    fn what_does_not_exist_can_be_made() {
        let folder = Folder::new();
        symlink("x/y", folder.at("dangling")).unwrap();
        for (path, truly, folders) in [
            ("new", "new", false),
            ("dangling/z/new", "x/y/z/new", true),
            ("dangling", "x/y", false),
        ] {
            let _ = std::fs::remove_dir_all(folder.at("x/y"));
            let mut spot = walk(&folder.at(path)).unwrap();
            assert_eq!(spot.path(), folder.at(truly));
            assert_eq!(spot.kind().unwrap(), None);
            assert_eq!(spot.make_folders().unwrap(), folders, "{path}");
            spot.stage(b"content").unwrap().commit().unwrap();
            assert_eq!(std::fs::read(folder.at(truly)).unwrap(), b"content");
        }
    }

    #[test]
    fn a_file_that_is_replaced_keeps_its_mode_and_one_that_is_not_leaves_nothing() {
        let folder = Folder::new();
        let path = folder.at("file");
        std::fs::write(&path, "before").unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o4751)).unwrap();
        let spot = walk(&path).unwrap();
        drop(spot.stage(b"dropped").unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), b"before");
        assert_eq!(folder.names(), ["file"]);
        spot.stage(b"after").unwrap().commit().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"after");
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o7777, 0o4751);
        assert_eq!(folder.names(), ["file"]);
        spot.remove().unwrap();
        assert_eq!(spot.kind().unwrap(), None);
        assert_eq!(folder.names(), [""; 0]);
    }

    #[test]
    fn what_was_exchanged_after_the_walk_is_not_followed() {
        let folder = Folder::new();
        std::fs::create_dir(folder.at("in")).unwrap();
        std::fs::create_dir(folder.at("out")).unwrap();
        std::fs::write(folder.at("in/file"), "mine").unwrap();
        std::fs::write(folder.at("out/file"), "not mine").unwrap();
        let spot = walk(&folder.at("in/file")).unwrap();
        std::fs::rename(folder.at("in"), folder.at("elsewhere")).unwrap();
        symlink("out", folder.at("in")).unwrap();
        assert_eq!(io::read_to_string(spot.open().unwrap()).unwrap(), "mine");
        std::fs::remove_file(folder.at("elsewhere/file")).unwrap();
        symlink("../out/file", folder.at("elsewhere/file")).unwrap();
        assert_eq!(spot.open().unwrap_err().raw_os_error(), Some(libc::ELOOP));
        spot.stage(b"new").unwrap().commit().unwrap();
        assert_eq!(std::fs::read(folder.at("out/file")).unwrap(), b"not mine");
        assert_eq!(std::fs::read(folder.at("elsewhere/file")).unwrap(), b"new");
    }

    #[test]
    fn neighbours_are_the_names_around_it() {
        let folder = Folder::new();
        for name in ["b", "a", "c"] {
            std::fs::write(folder.at(name), "").unwrap();
        }
        let mut names = walk(&folder.at("d")).unwrap().neighbours(100).unwrap();
        names.sort();
        assert_eq!(names, ["a", "b", "c"]);
        assert_eq!(
            walk(&folder.at("d")).unwrap().neighbours(2).unwrap().len(),
            2
        );
    }
}
