//! What an interrupted run leaves behind: nothing, but for what it says that it found until then.

#[cfg(unix)]
pub use self::unix::{forget, remember, stopping};

#[cfg(not(unix))]
pub use self::elsewhere::{forget, remember, stopping};

#[cfg(unix)]
mod unix {
    use std::path::{Path, PathBuf};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Mutex, Once, PoisonError};
    use std::{fs, process, thread};

    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;

    static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
    static WATCH: Once = Once::new();
    /// Whether the work looks at `STOP`, and whether it is to stop.
    static LOOKED_AT: AtomicBool = AtomicBool::new(false);
    static STOP: AtomicBool = AtomicBool::new(false);

    /// Lets the first Ctrl-C end the work early instead of the run: what this gives is true from then on. The second one ends the run.
    pub fn stopping() -> &'static AtomicBool {
        WATCH.call_once(watch);
        LOOKED_AT.store(true, Ordering::Relaxed);
        &STOP
    }

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
            for signal in signals.forever() {
                if signal == SIGINT && LOOKED_AT.load(Ordering::Relaxed) && !STOP.swap(true, Ordering::Relaxed) {
                    continue;
                }
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
    use std::sync::atomic::AtomicBool;

    /// Nothing is done here on this system.
    pub fn stopping() -> &'static AtomicBool {
        static NEVER: AtomicBool = AtomicBool::new(false);
        &NEVER
    }

    /// Nothing is done here on this system.
    pub fn remember(_: &Path) {}

    /// Nothing is done here on this system.
    pub fn forget(_: &Path) {}
}
