//! `dyelog rules lsp`: a language server for rule files.
//!
//! One thread reads what comes, one takes it in turn and checks documents when nothing waits, one counts matches in traces. Whatever
//! comes, the server goes on to its end: `exit`, or the end of its input.

mod answers;
mod documents;
mod findings;
mod frames;
mod lenses;
mod lines;
mod server;

use std::io::{self, BufReader};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use clap::Args;
use lsp_server::{ErrorCode, Message, Response};
use serde::Serialize;
use serde_json::json;

use self::frames::Frame;
use self::server::Server;
use crate::cli::exit::Exit;

/// Messages that are read ahead.
const AHEAD: usize = 64;
/// How often files on the disk are looked at while nothing comes.
const PAUSE: Duration = Duration::from_secs(1);

/// Arguments of `dyelog rules lsp`.
#[derive(Debug, Args)]
#[command(after_long_help = examples! {
    "what an editor starts; it ends with its input" => "dyelog rules lsp < /dev/null",
})]
pub struct Arguments {}

/// What came from the client.
enum Came {
    Message(Box<Message>),
    /// Something that is no message, and why.
    Broken(ErrorCode, String),
}

/// Serves one editor until it says goodbye, or its input ends.
pub fn run() -> Exit {
    let client = Client(Arc::new(Mutex::new(io::stdout())));
    let (sender, receiver) = sync_channel(AHEAD);
    thread::spawn(move || listen(&sender));
    let mut server = Server::new(client.clone(), lenses::start(client.clone()));
    serve(&receiver, &mut server, &client)
}

/// Takes messages as they come, and checks documents when none waits.
fn serve(receiver: &Receiver<Came>, server: &mut Server, client: &Client) -> Exit {
    loop {
        let came = match receiver.try_recv() {
            Ok(came) => came,
            Err(TryRecvError::Disconnected) => {
                // What was opened before the input ended is still told about.
                while server.work() {}
                return Exit::Ok;
            }
            Err(TryRecvError::Empty) if server.work() => continue,
            Err(TryRecvError::Empty) => match receiver.recv_timeout(PAUSE) {
                Ok(came) => came,
                Err(RecvTimeoutError::Disconnected) => continue,
                Err(RecvTimeoutError::Timeout) => {
                    server.look();
                    continue;
                }
            },
        };
        match came {
            Came::Message(message) => {
                if let Some(exit) = server.take(*message) {
                    return exit;
                }
            }
            Came::Broken(code, reason) => client.complain(code, &reason),
        }
    }
}

/// Reads messages up to the end of the input.
fn listen(sender: &SyncSender<Came>) {
    let mut input = BufReader::new(io::stdin());
    while let Ok(Some(frame)) = frames::next(&mut input) {
        let came = match frame {
            Frame::Body(bytes) => match serde_json::from_slice::<Message>(&bytes) {
                Ok(message) => Came::Message(Box::new(message)),
                Err(error) if error.is_data() => Came::Broken(ErrorCode::InvalidRequest, error.to_string()),
                Err(error) => Came::Broken(ErrorCode::ParseError, error.to_string()),
            },
            Frame::Broken(reason) => Came::Broken(ErrorCode::ParseError, reason),
        };
        if sender.send(came).is_err() {
            return;
        }
    }
}

/// The client, which several threads may answer.
#[derive(Clone)]
pub struct Client(Arc<Mutex<io::Stdout>>);

impl Client {
    /// Answers a request.
    fn respond(&self, response: Response) {
        let mut body = json!({ "jsonrpc": "2.0", "id": response.id });
        match response.error {
            Some(error) => body["error"] = json!(error),
            None => body["result"] = response.result.unwrap_or_default(),
        }
        self.write(&body.to_string());
    }

    /// Tells what the client did not ask for.
    fn notify(&self, method: &str, params: &impl Serialize) {
        self.write(&json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string());
    }

    /// Answers what is no request.
    fn complain(&self, code: ErrorCode, reason: &str) {
        let error = json!({ "code": code as i32, "message": reason });
        self.write(&json!({ "jsonrpc": "2.0", "id": null, "error": error }).to_string());
    }

    fn write(&self, body: &str) {
        let mut output = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A client that hears nothing any more ends its side, too.
        let _ = frames::write(&mut *output, body);
    }
}
