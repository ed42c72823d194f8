//! Link settings of the shared library, and the C header when the feature `header` is on.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let target_os = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    match target_os.as_str() {
        // Engine threads outlive a dlclose, so the code must stay mapped.
        "linux" | "android" | "freebsd" | "netbsd" | "openbsd" | "dragonfly" => {
            println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
        }
        "macos" => println!("cargo:rustc-cdylib-link-arg=-Wl,-install_name,@rpath/libptc.dylib"),
        _ => {}
    }
    #[cfg(feature = "header")]
    header::write();
}

#[cfg(feature = "header")]
mod header {
    use std::path::PathBuf;

    /// Writes `ptc.h` to the folder that `PTC_HEADER_OUT` names, else to `include/`.
    pub fn write() {
        println!("cargo:rerun-if-changed=src/ffi");
        println!("cargo:rerun-if-changed=include/cbindgen.toml");
        println!("cargo:rerun-if-env-changed=PTC_HEADER_OUT");
        let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
        let out = std::env::var_os("PTC_HEADER_OUT").map_or(root.join("include"), PathBuf::from);
        let config = cbindgen::Config::from_file(root.join("include/cbindgen.toml"))
            .expect("include/cbindgen.toml");
        cbindgen::Builder::new()
            .with_crate(&root)
            .with_config(config)
            .generate()
            .expect("cbindgen reads src/ffi")
            .write_to_file(out.join("ptc.h"));
    }
}
