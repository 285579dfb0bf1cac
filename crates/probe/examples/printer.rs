//! A client, a server on a thread of its own, and a message that nobody waits for; the records go to the file that is named.
//!
//! ```sh
//! cargo run -p dyelog-probe --example printer -- printer.calls
//! dyelog profile printer.calls
//! ```

use std::sync::mpsc;

use dyelog_probe::{Carrier, Form, Function, Mode, Recorder};

static PRINT: Function = Function::new("Demo::Printer", "print");
static RENDER: Function = Function::new("Demo::Printer", "render");
static LOG: Function = Function::new("Demo::Log", "log");

/// What the server is sent, with what travels along.
enum Request {
    Print { page: String, carrier: Option<Carrier>, reply: mpsc::Sender<usize> },
    Log { carrier: Option<Carrier> },
}

fn serve(inbox: mpsc::Receiver<Request>) {
    for request in inbox {
        match request {
            Request::Print { page, carrier, reply } => {
                let _print = PRINT.serve(carrier);
                let glyphs = {
                    let _render = RENDER.enter();
                    (0..2000).map(|_| page.chars().filter(|glyph| glyph.is_alphanumeric()).count()).max()
                };
                if reply.send(glyphs.unwrap_or(0)).is_err() {
                    // The client is gone.
                    return;
                }
            }
            Request::Log { carrier } => {
                let _log = LOG.serve(carrier);
            }
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "printer.calls".to_owned());
    let recorder = Recorder::of("printer").mode(Mode::Both).file(Form::Binary, &path).start()?;
    let (outbox, inbox) = mpsc::channel();
    let server = std::thread::spawn(move || serve(inbox));
    for page in ["Hello, world", "the second page", "and the last one"] {
        let (reply, answer) = mpsc::channel();
        let print = PRINT.call();
        outbox.send(Request::Print { page: page.to_owned(), carrier: print.carrier(), reply })?;
        println!("{} glyphs", answer.recv()?);
        drop(print);
        let log = LOG.send();
        outbox.send(Request::Log { carrier: log.carrier() })?;
    }
    drop(outbox);
    server.join().map_err(|_| "the server panicked")?;
    eprintln!("{path}: {}", recorder.finish());
    Ok(())
}
