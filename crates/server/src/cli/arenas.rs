//! Bounds on what the C library's allocator keeps.
//!
//! It gives each thread an arena of its own and keeps there what the thread needs no longer: a quarter as much again as is in use. It reads its bounds where a program
//! starts, so that the program has to start once more with them.

/// One arena, out of which at most so many bytes are kept at its end, and in which nothing larger lies. Threads that allocate much at a time are few here.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const BOUNDS: [(&str, &str); 3] =
    [("MALLOC_ARENA_MAX", "1"), ("MALLOC_TRIM_THRESHOLD_", "4194304"), ("MALLOC_MMAP_THRESHOLD_", "1048576")];

/// Starts this program once more with the bounds, unless the environment has such. Comes back where that was done before, or cannot be done.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn bound() {
    use std::env;
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;

    let mut arguments = env::args_os();
    if BOUNDS.iter().any(|(name, _)| env::var_os(name).is_some()) {
        return;
    }
    let (Some(name), Ok(program)) = (arguments.next(), env::current_exe()) else { return };
    // Where this fails, more memory is taken and all else works.
    let _: std::io::Error = Command::new(program).arg0(name).args(arguments).envs(BOUNDS).exec();
}

/// Another allocator has no such bounds.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn bound() {}
