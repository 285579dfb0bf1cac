//! What an interrupted run leaves behind: nothing.

#[cfg(unix)]
pub use self::unix::{forget, remember};

#[cfg(not(unix))]
pub use self::elsewhere::{forget, remember};

#[cfg(unix)]
mod unix {
    use std::path::{Path, PathBuf};
    use std::sync::{Mutex, Once, PoisonError};
    use std::{fs, process, thread};

    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;

    static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
    static WATCH: Once = Once::new();

    /// A file is to be removed if the run is interrupted (Ctrl-C, or a polite `kill`). The run then ends as it would have
    /// ended otherwise: by that signal.
    pub fn remember(path: &Path) {
        WATCH.call_once(watch);
        unfinished().push(path.to_owned());
    }

    /// A file is complete, or gone.
    pub fn forget(path: &Path) {
        unfinished().retain(|known| known != path);
    }

    fn unfinished() -> std::sync::MutexGuard<'static, Vec<PathBuf>> {
        UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watch() {
        // Where signals cannot be watched a run that is interrupted leaves its file behind, under a name that says what it is.
        let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) else { return };
        thread::spawn(move || {
            if let Some(signal) = signals.forever().next() {
                for path in unfinished().drain(..) {
                    let _ = fs::remove_file(path);
                }
                let _ = emulate_default_handler(signal);
                process::abort();
            }
        });
    }
}

#[cfg(not(unix))]
mod elsewhere {
    use std::path::Path;

    /// Nothing is done here on this system.
    pub fn remember(_: &Path) {}

    /// Nothing is done here on this system.
    pub fn forget(_: &Path) {}
}
