//! Binary files of suppliers, message by message, whatever the size of the file.

use std::io::{self, BufRead, ErrorKind, Read};
use std::sync::Arc;

use super::otlp_proto::wire::{Malformed, Value};
use crate::codes;
use crate::read::failed;
use crate::spans::builder::Builder;
use dyelog_diagnostic::{Diagnostic, Diagnostics, Place, Severity};

/// A field of the outermost message; its bytes, where it has any.
pub(super) fn field(input: &mut dyn BufRead) -> io::Result<Option<(u64, Vec<u8>)>> {
    let mut body = Vec::new();
    let number = value(input, &mut body)?.map(|(number, _)| number);
    Ok(number.map(|number| (number, body)))
}

/// A field of the outermost message: its number and value, whose bytes lie in `body`.
pub(super) fn value<'b>(input: &mut dyn BufRead, body: &'b mut Vec<u8>) -> io::Result<Option<(u64, Value<'b>)>> {
    body.clear();
    if input.fill_buf()?.is_empty() {
        return Ok(None);
    }
    let key = number(input)?;
    let length = match key & 7 {
        0 => return Ok(Some((key >> 3, Value::Varint(number(input)?)))),
        1 => 8,
        2 => number(input)?,
        5 => 4,
        _ => return Err(malformed(Malformed)),
    };
    if input.take(length).read_to_end(body)? as u64 != length {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(Some((key >> 3, Value::Bytes(body))))
}

/// How an input begins: so much of it as formats are told by. One read of a pipe gives less.
pub(super) fn beginning(file: &Arc<str>, input: &mut dyn Read) -> Result<Vec<u8>, Diagnostics> {
    let mut head = Vec::new();
    input.take(64 << 10).read_to_end(&mut head).map_err(|error| failed(file, &error))?;
    Ok(head)
}

/// Refuses what begins neither like JSON nor like a binary form that is read.
pub(super) fn json_or_refused(file: &Arc<str>, head: &[u8], title: &str, forms: &str) -> Result<(), Diagnostics> {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    if matches!(text.first(), None | Some(b'{' | b'[')) {
        return Ok(());
    }
    let place = Place::File { file: Arc::clone(file) };
    let message = format!("this begins neither like JSON nor like a binary form of {title}");
    Err(Diagnostic::error(codes::BAD_MESSAGE, place, message).with_hint(forms).into())
}

/// A number of variable length.
pub(super) fn number(input: &mut dyn BufRead) -> io::Result<u64> {
    let mut number = 0;
    for at in 0..10 {
        let mut byte = [0];
        input.read_exact(&mut byte)?;
        number |= u64::from(byte[0] & 0x7f) << (7 * at).min(63);
        if byte[0] < 0x80 {
            return Ok(number);
        }
    }
    Err(malformed(Malformed))
}

pub(super) fn malformed(_: Malformed) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "a field is of no type")
}

/// A text, whatever bytes are in it.
pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What came before damage is used, and the damage counted.
pub(super) fn cut_off(
    builder: &mut Builder<'_>,
    kind: &str,
    read: io::Result<()>,
    strict: bool,
) -> Result<(), Diagnostics> {
    let Err(error) = read else { return Ok(()) };
    let file = Arc::clone(&builder.file);
    let early = error.kind() == ErrorKind::UnexpectedEof;
    if !early && error.kind() != ErrorKind::InvalidData {
        return Err(failed(&file, &error).into());
    }
    let what = if early { format!("the {kind} ends too early") } else { format!("this is not {kind}: {error}") };
    let used = builder.count();
    let finding = Diagnostic::error(codes::BAD_MESSAGE, Place::File { file }, what);
    if strict || used == 0 {
        return Err(finding.into());
    }
    builder.is_truncated = true;
    builder.report.count("message that cannot be read further", || Diagnostic {
        severity: Severity::Warning,
        ..finding.with_note(format!("the {used} spans before it are used; what came after is lost"))
    });
    Ok(())
}
