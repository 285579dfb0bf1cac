//! What a document says, in the words of the protocol.

use dyelog::authoring::language::{Proposal, ProposalKind};
use dyelog::datalog::syntax;
use lsp_types::{
    CompletionItem, CompletionItemKind, Hover, HoverContents, Location, MarkupContent, MarkupKind, Position, TextEdit,
};

use super::documents::{Document, Documents, uri_of};

/// What the name at a position means.
pub fn hover(documents: &Documents, document: &Document, position: Position) -> Option<Hover> {
    let read = documents.read(document);
    let (bytes, value) = read.hover(document.lines.byte(&document.text, position))?;
    let contents = HoverContents::Markup(MarkupContent { kind: MarkupKind::Markdown, value });
    Some(Hover { contents, range: Some(document.lines.between(&document.text, bytes)) })
}

/// Where the name at a position is defined. What ships lies in no file.
pub fn definition(documents: &Documents, document: &Document, position: Position) -> Option<Location> {
    let read = documents.read(document);
    let target = read.definition(document.lines.byte(&document.text, position))?;
    if target.file == document.name {
        let range = document.lines.between(&document.text, target.bytes);
        return Some(Location { uri: document.uri.clone(), range });
    }
    let path = Documents::path_beside(document, &target.file)?;
    let range = documents.range_in(&path, target.bytes)?;
    Some(Location { uri: uri_of(&path)?, range })
}

/// What may come next at a position.
pub fn completion(documents: &Documents, document: &Document, position: Position) -> Vec<CompletionItem> {
    let read = documents.read(document);
    let proposals = read.proposals(document.lines.byte(&document.text, position));
    proposals
        .into_iter()
        .map(|Proposal { kind, label, detail }| CompletionItem {
            label,
            kind: Some(match kind {
                ProposalKind::Keyword => CompletionItemKind::KEYWORD,
                ProposalKind::Relation | ProposalKind::Operation => CompletionItemKind::FUNCTION,
                ProposalKind::Column => CompletionItemKind::FIELD,
                ProposalKind::Template => CompletionItemKind::CLASS,
                ProposalKind::File => CompletionItemKind::FILE,
                ProposalKind::Name => CompletionItemKind::VARIABLE,
            }),
            detail: (!detail.is_empty()).then_some(detail),
            ..CompletionItem::default()
        })
        .collect()
}

/// The one change that puts a document into the one style; none of one that cannot be read, or has it.
pub fn formatting(document: &Document) -> Option<Vec<TextEdit>> {
    let formatted = syntax::format(&document.name, &document.text).ok()?;
    if formatted == *document.text {
        return Some(Vec::new());
    }
    let range = document.lines.between(&document.text, 0..document.text.len());
    Some(vec![TextEdit { range, new_text: formatted }])
}
