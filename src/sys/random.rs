//! Random bits for names and tokens that nobody may guess.

use std::io;

/// Fills `buffer` from the kernel's generator.
pub(crate) fn fill(buffer: &mut [u8]) -> io::Result<()> {
    #[cfg(all(target_os = "linux", not(ptc_portable)))]
    if from_kernel(buffer).is_ok() {
        return Ok(());
    }
    from_device(buffer)
}

/// 64 random bits.
pub(crate) fn u64() -> io::Result<u64> {
    let mut bytes = [0; 8];
    fill(&mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}

/// 128 random bits as 32 lower-case hexadecimal digits.
pub(crate) fn hex128() -> io::Result<String> {
    let mut bytes = [0; 16];
    fill(&mut bytes)?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}

#[cfg(all(target_os = "linux", not(ptc_portable)))]
fn from_kernel(mut buffer: &mut [u8]) -> io::Result<()> {
    use super::fd::retry;
    while !buffer.is_empty() {
        let (start, len) = (buffer.as_mut_ptr().cast(), buffer.len());
        // SAFETY: pointer and length describe `buffer`, borrowed mutably for the whole call.
        let filled = retry(|| {
            usize::try_from(unsafe { libc::getrandom(start, len, 0) })
                .map_err(|_| io::Error::last_os_error())
        })?;
        buffer = &mut buffer[filled..];
    }
    Ok(())
}

fn from_device(buffer: &mut [u8]) -> io::Result<()> {
    use std::io::Read;
    const DEVICE: &str = "/dev/urandom";
    std::fs::File::open(DEVICE)
        .and_then(|mut device| device.read_exact(buffer))
        .map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("no random bits: cannot read {DEVICE}: {error}"),
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sources_fill_the_whole_buffer() {
        // One byte in 256 is zero by chance: 64 zeros in a row are not.
        let is_filled = |bytes: &[u8]| bytes.chunks(64).all(|part| part.iter().any(|&b| b != 0));
        let mut bytes = [0; 4096];
        fill(&mut bytes).unwrap();
        assert!(is_filled(&bytes));
        let mut bytes = [0; 4096];
        from_device(&mut bytes).unwrap();
        assert!(is_filled(&bytes));
    }

    #[test]
    fn no_two_are_alike() {
        assert_ne!(u64().unwrap(), u64().unwrap());
        let (one, two) = (hex128().unwrap(), hex128().unwrap());
        assert_ne!(one, two);
        assert_eq!(one.len(), 32);
        assert!(one.bytes().all(|b| b.is_ascii_hexdigit()));
    }
}
