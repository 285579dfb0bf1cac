//! A headless browser, where there is one: Debian's chromium.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

/// A browser.
#[derive(Clone, Debug)]
pub struct Browser {
    program: PathBuf,
    dark: bool,
}

/// What a browser made of a page.
pub struct Seen {
    /// The document after its scripts ran.
    pub document: String,
    /// What it wrote to the console: errors, and whatever the page's policy refused.
    pub errors: Vec<String>,
}

impl Seen {
    /// The text of the element with that identifier.
    pub fn text_of(&self, identifier: &str) -> String {
        let begin = format!("<pre id=\"{identifier}\">");
        let after = self.document.split_once(&begin).map(|(_, after)| after);
        let text = after.and_then(|after| after.split_once("</pre>")).map(|(text, _)| text);
        let text = text.unwrap_or_else(|| panic!("the probe wrote nothing; console: {:?}", self.errors));
        text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    }
}

/// One at a time: they are hungry.
static TURN: Mutex<()> = Mutex::new(());

impl Browser {
    /// The browser of this machine. Tests that use it are ignored, for that reason, where there may be none; `.ci/run` runs them.
    pub fn find() -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let names = ["chromium", "chromium-browser"];
        let program = std::env::split_paths(&path)
            .flat_map(|folder| names.map(|name| folder.join(name)))
            .find(|file| file.is_file());
        Self { program: program.expect("there is no chromium to look at the page with"), dark: false }
    }

    /// The same for somebody who likes dark pages, or light ones.
    pub fn dark(&self, dark: bool) -> Self {
        Self { dark, ..self.clone() }
    }

    /// What comes of a page with a script at its end.
    pub fn probe(&self, page: &str, script: &str) -> Seen {
        let end = page.rfind("</body>").expect("a page has an end");
        self.open(&format!("{}<script>{script}</script>{}", &page[..end], &page[end..]))
    }

    /// How wide a page gets on a screen so wide, and what it wrote to the console.
    pub fn width_needed(&self, page: &str, width: u32) -> (u32, Vec<String>) {
        let inner = page.replace('&', "&amp;").replace('"', "&quot;");
        let frame = format!(
            "<!DOCTYPE html><body><iframe id=\"frame\" style=\"border:0;width:{width}px;height:900px\" srcdoc=\"{inner}\"></iframe>\
             <script>document.getElementById('frame').addEventListener('load', (event) => {{\
             const result = document.createElement('pre'); result.id = 'outcome';\
             result.textContent = event.target.contentDocument.documentElement.scrollWidth;\
             event.target.remove(); document.body.append(result); }});</script></body>"
        );
        let seen = self.open(&frame);
        (seen.text_of("outcome").trim().parse().expect("a width"), seen.errors)
    }

    fn open(&self, page: &str) -> Seen {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let file = folder.path().join("page.html");
        fs::write(&file, page).expect("the scratch folder is writable");
        self.visit(&format!("file://{}", file.display()))
    }

    /// What comes of the page at an address.
    pub fn visit(&self, address: &str) -> Seen {
        let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let folder = tempfile::tempdir().expect("a scratch folder");
        let output = self.command(folder.path()).arg(address).output().expect("chromium runs");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{told}");
        Seen {
            document: String::from_utf8_lossy(&output.stdout).into_owned(),
            errors: told.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned).collect(),
        }
    }

    fn command(&self, folder: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
            .args(["--enable-logging=stderr", "--virtual-time-budget=5000", "--window-size=1280,900", "--dump-dom"])
            .arg(format!("--blink-settings=preferredColorScheme={}", u8::from(!self.dark)))
            .arg(format!("--user-data-dir={}", folder.join("profile").display()))
            .stdin(Stdio::null());
        command
    }
}
