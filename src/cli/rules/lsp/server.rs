//! What a client asks, and what it is answered.

use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use lsp_server::{ErrorCode, Message, Notification, Request, RequestId, Response};
use lsp_types::{
    CodeLensParams, CompletionParams, DidChangeTextDocumentParams, DidChangeWatchedFilesParams,
    DidCloseTextDocumentParams, DidOpenTextDocumentParams, DocumentFormattingParams, GotoDefinitionParams, HoverParams,
    Position, PublishDiagnosticsParams, TextDocumentPositionParams, Uri,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::documents::{Document, Documents, path_of};
use super::lenses::Job;
use super::{Client, answers, findings};
use crate::cli::exit::Exit;

/// How far a client has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    New,
    Running,
    Down,
}

/// A server for one client.
pub struct Server {
    client: Client,
    lenses: Sender<Job>,
    documents: Documents,
    stage: Stage,
}

/// An error that a request is answered with.
type Refusal = (ErrorCode, String);

impl Server {
    /// One that nobody has spoken to yet.
    pub fn new(client: Client, lenses: Sender<Job>) -> Self {
        Self { client, lenses, documents: Documents::default(), stage: Stage::New }
    }

    /// Takes a message; gives the exit code where it was the last one.
    pub fn take(&mut self, message: Message) -> Option<Exit> {
        match message {
            Message::Request(request) => {
                let id = request.id.clone();
                let answered = panic::catch_unwind(AssertUnwindSafe(|| self.request(request)));
                match answered {
                    Ok(Ok(Some(value))) => self.client.respond(Response { id, result: Some(value), error: None }),
                    Ok(Ok(None)) => {}
                    Ok(Err((code, message))) => self.client.respond(Response::new_err(id, code as i32, message)),
                    Err(_) => {
                        let message = "a defect of dyelog; the next request is served".to_owned();
                        self.client.respond(Response::new_err(id, ErrorCode::InternalError as i32, message));
                    }
                }
                None
            }
            Message::Notification(notification) if notification.method == "exit" => {
                // The protocol has it so: a client that did not say goodbye hears of it.
                Some(if self.stage == Stage::Down { Exit::Ok } else { Exit::Finding })
            }
            Message::Notification(notification) => {
                if self.stage == Stage::Running {
                    let told = panic::catch_unwind(AssertUnwindSafe(|| self.notification(notification)));
                    if let Ok(Err(message)) = told {
                        self.client.notify("window/showMessage", &json!({ "type": 1, "message": message }));
                    }
                }
                None
            }
            Message::Response(_) => None,
        }
    }

    /// Checks one document that has changed; whether there was one.
    pub fn work(&mut self) -> bool {
        let Some(uri) = self.documents.next_dirty() else { return false };
        let shown = panic::catch_unwind(AssertUnwindSafe(|| {
            let checked = self.documents.check(&uri)?;
            let document = self.documents.get(&uri)?;
            let diagnostics = findings::shown(&self.documents, document, &checked.findings);
            Some(PublishDiagnosticsParams { uri: uri.clone(), diagnostics, version: Some(document.version) })
        }));
        match shown {
            Ok(shown) => {
                if let Some(shown) = shown {
                    self.client.notify("textDocument/publishDiagnostics", &shown);
                }
            }
            // It would fail again: what it says is not checked until it changes.
            Err(_) => self.documents.close(&uri),
        }
        true
    }

    /// Marks documents that use files which have changed on the disk.
    pub fn look(&mut self) {
        self.documents.look();
    }

    fn request(&mut self, request: Request) -> Result<Option<Value>, Refusal> {
        match (self.stage, request.method.as_str()) {
            (Stage::New, "initialize") => {
                self.stage = Stage::Running;
                return Ok(Some(capabilities()));
            }
            (Stage::New, _) => {
                return Err((ErrorCode::ServerNotInitialized, "`initialize` comes first".to_owned()));
            }
            (Stage::Down, _) => return Err((ErrorCode::InvalidRequest, "the server is shut down".to_owned())),
            (Stage::Running, _) => {}
        }
        let params = request.params;
        match request.method.as_str() {
            "initialize" => Err((ErrorCode::InvalidRequest, "the server is initialized".to_owned())),
            "shutdown" => {
                self.stage = Stage::Down;
                Ok(Some(Value::Null))
            }
            "textDocument/hover" => {
                let asked: HoverParams = read(params)?;
                Ok(Some(self.at(&asked.text_document_position_params, answers::hover)))
            }
            "textDocument/definition" => {
                let asked: GotoDefinitionParams = read(params)?;
                Ok(Some(self.at(&asked.text_document_position_params, answers::definition)))
            }
            "textDocument/completion" => {
                let asked: CompletionParams = read(params)?;
                Ok(Some(self.at(&asked.text_document_position, |documents, document, position| {
                    Some(answers::completion(documents, document, position))
                })))
            }
            "textDocument/formatting" => {
                let asked: DocumentFormattingParams = read(params)?;
                Ok(Some(value(&self.documents.get(&asked.text_document.uri).and_then(answers::formatting))))
            }
            "textDocument/codeLens" => {
                let asked: CodeLensParams = read(params)?;
                Ok(self.lenses(request.id, &asked.text_document.uri))
            }
            other => Err((ErrorCode::MethodNotFound, format!("there is no method `{other}`"))),
        }
    }

    /// The answer to a question about a position; nothing where the document is not open.
    fn at<T: Serialize>(
        &self,
        asked: &TextDocumentPositionParams,
        answer: impl FnOnce(&Documents, &Document, Position) -> Option<T>,
    ) -> Value {
        let document = self.documents.get(&asked.text_document.uri);
        value(&document.and_then(|document| answer(&self.documents, document, asked.position)))
    }

    /// Has lenses counted, or answers at once where there are none.
    fn lenses(&self, id: RequestId, uri: &Uri) -> Option<Value> {
        let none = Some(json!([]));
        let Some(document) = self.documents.get(uri) else { return none };
        let Some(folder) = document.path.as_ref().and_then(|path| path.parent()).map(PathBuf::from) else {
            return none;
        };
        let read = self.documents.read(document);
        let templates = read.templates();
        if templates.is_empty() {
            return none;
        }
        let range = |bytes| document.lines.between(&document.text, bytes);
        let job = Job {
            id,
            uri: uri.clone(),
            folder,
            file: (Arc::clone(&document.name), Arc::clone(&document.text)),
            used: read.used().collect(),
            templates: templates.into_iter().map(|(name, bytes)| (name, range(bytes))).collect(),
        };
        // The thread that counts is there as long as the server.
        if self.lenses.send(job).is_ok() { None } else { none }
    }

    fn notification(&mut self, notification: Notification) -> Result<(), String> {
        let params = notification.params;
        let refused = |(_, message): Refusal| message;
        match notification.method.as_str() {
            "textDocument/didOpen" => {
                let opened: DidOpenTextDocumentParams = read(params).map_err(refused)?;
                let item = opened.text_document;
                self.documents.open(item.uri, item.version, item.text)
            }
            "textDocument/didChange" => {
                let changed: DidChangeTextDocumentParams = read(params).map_err(refused)?;
                let (uri, version) = (changed.text_document.uri, changed.text_document.version);
                self.documents.change(&uri, version, changed.content_changes)
            }
            "textDocument/didClose" => {
                let closed: DidCloseTextDocumentParams = read(params).map_err(refused)?;
                let uri = closed.text_document.uri;
                self.documents.close(&uri);
                let none = PublishDiagnosticsParams { uri, diagnostics: Vec::new(), version: None };
                self.client.notify("textDocument/publishDiagnostics", &none);
                Ok(())
            }
            "workspace/didChangeWatchedFiles" => {
                let changed: DidChangeWatchedFilesParams = read(params).map_err(refused)?;
                for path in changed.changes.iter().filter_map(|change| path_of(&change.uri)) {
                    self.documents.touch(&path);
                }
                Ok(())
            }
            // `initialized`, `didSave`, cancellations, and what later versions of the protocol have.
            _ => Ok(()),
        }
    }
}

fn read<P: DeserializeOwned>(params: Value) -> Result<P, Refusal> {
    serde_json::from_value(params).map_err(|error| (ErrorCode::InvalidParams, error.to_string()))
}

fn value(of: &impl Serialize) -> Value {
    serde_json::to_value(of).unwrap_or(Value::Null)
}

/// What the server can do.
fn capabilities() -> Value {
    json!({
        "capabilities": {
            "positionEncoding": "utf-16",
            "textDocumentSync": { "openClose": true, "change": 2 },
            "hoverProvider": true,
            "definitionProvider": true,
            "completionProvider": { "triggerCharacters": ["(", "{", ",", "\""] },
            "documentFormattingProvider": true,
            "codeLensProvider": { "resolveProvider": false },
        },
        "serverInfo": { "name": "dyelog", "version": env!("CARGO_PKG_VERSION") },
    })
}
