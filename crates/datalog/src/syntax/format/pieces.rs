//! The tokens of a rule file with the comments that stand before each, and how far apart tokens of one construct stand.

use crate::syntax::lexer::{TokenKind, tokens};

/// A comment, without the white space at its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Comment<'t> {
    pub text: &'t str,
    /// Whether it begins its line; else it stands behind something.
    pub own_line: bool,
    /// Whether an empty line stands before it.
    pub blank: bool,
}

/// A token that means something.
#[derive(Clone, Debug)]
pub(super) struct Piece<'t> {
    pub kind: TokenKind,
    pub text: &'t str,
    pub start: u32,
    pub end: u32,
    /// The comments between the piece before and this one.
    pub comments: Vec<Comment<'t>>,
    /// Whether it is the first piece of its line.
    pub newline: bool,
    /// Whether an empty line stands right before it.
    pub blank: bool,
}

/// The pieces of a text, and the comments after the last. A comma that closes a list is left out.
pub(super) fn pieces(text: &str) -> (Vec<Piece<'_>>, Vec<Comment<'_>>) {
    let mut found: Vec<Piece<'_>> = Vec::new();
    let mut comments = Vec::new();
    let mut newline = true;
    let mut end = 0;
    for token in tokens(text) {
        let between = &text[end..token.start as usize];
        let breaks = between.bytes().filter(|byte| *byte == b'\n').count();
        end = token.end as usize;
        let slice = &text[token.start as usize..end];
        newline |= breaks > 0;
        if token.kind.is_comment() {
            comments.push(Comment { text: slice.trim_end(), own_line: newline, blank: breaks > 1 });
            newline = false;
            continue;
        }
        // A comment ends with its line.
        let newline_here = std::mem::take(&mut newline) || !comments.is_empty();
        let closes = matches!(token.kind, TokenKind::CloseCurly | TokenKind::CloseRound | TokenKind::Dot);
        let mut before = std::mem::take(&mut comments);
        let mut first = newline_here;
        if closes && let Some(comma) = found.pop_if(|piece| piece.kind == TokenKind::Comma) {
            first |= comma.newline;
            before.splice(0..0, comma.comments);
        }
        found.push(Piece {
            kind: token.kind,
            text: slice,
            start: token.start,
            end: token.end,
            comments: before,
            newline: first,
            blank: breaks > 1,
        });
    }
    (found, comments)
}

/// What stands between the piece at `at` and the one before it, where both are of one construct.
pub(super) fn gap(pieces: &[Piece<'_>], at: usize) -> &'static str {
    use TokenKind as K;
    let (before, here) = (&pieces[at - 1], &pieces[at]);
    let tight = match (before.kind, here.kind) {
        (_, K::Comma | K::CloseRound | K::CloseSquare | K::Dot | K::Colon | K::Range)
        | (K::OpenRound | K::OpenSquare | K::Not | K::Range, _)
        | (K::OpenCurly, K::CloseCurly) => true,
        (K::Word, K::OpenSquare) => !names_kind(pieces, at - 1),
        (K::Word, K::OpenRound) => !names_aggregate(pieces, at - 1),
        (K::Minus, _) if is_sign(pieces, at - 1) => true,
        (K::Plus | K::Minus, _) => is_offset(pieces, at - 1),
        (_, K::Plus | K::Minus) => is_offset(pieces, at),
        _ => false,
    };
    if tight { "" } else { " " }
}

/// `max (x * 2) { … }`: the word before the bracket is no relation.
fn names_aggregate(pieces: &[Piece<'_>], at: usize) -> bool {
    at > 0 && pieces[at - 1].kind == TokenKind::Equal && matches!(pieces[at].text, "count" | "sum" | "min" | "max")
}

/// `e1 = Ac [j, k, m | a, v]`: the bracket after the word opens a label, not an index.
fn names_kind(pieces: &[Piece<'_>], at: usize) -> bool {
    at > 0 && pieces[at - 1].kind == TokenKind::Equal && matches!(pieces[at].text, "Be" | "Ac" | "Ed")
}

/// Whether a minus is the sign of what follows, not between two operands.
fn is_sign(pieces: &[Piece<'_>], at: usize) -> bool {
    use TokenKind as K;
    let operand =
        |kind| matches!(kind, K::Number | K::Float | K::Text | K::CloseRound | K::CloseSquare | K::Underscore);
    match at.checked_sub(1).map(|before| &pieces[before]) {
        Some(before) if before.kind == K::Word => before.text == "order",
        Some(before) => !operand(before.kind),
        None => true,
    }
}

/// Whether the operator at `at` adds a number to a variable, as in `m+1`, which is one term.
fn is_offset(pieces: &[Piece<'_>], at: usize) -> bool {
    use TokenKind as K;
    let strong = |kind| matches!(kind, K::Star | K::Slash | K::Percent | K::Minus);
    let kind = |at: usize| pieces.get(at).map(|piece| piece.kind);
    if !matches!(kind(at), Some(K::Plus | K::Minus))
        || is_sign(pieces, at)
        || !matches!(kind(at + 1), Some(K::Number | K::Float))
    {
        return false;
    }
    let mut first = at - 1;
    if kind(first) == Some(K::CloseSquare) {
        while first > 0 && kind(first) != Some(K::OpenSquare) {
            first -= 1;
        }
        first = first.saturating_sub(1);
    }
    let before = first.checked_sub(1).and_then(kind);
    kind(first) == Some(K::Word) && !before.is_some_and(strong) && !kind(at + 2).is_some_and(strong)
}
