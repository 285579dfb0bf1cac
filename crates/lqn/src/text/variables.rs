//! Definitions of variables: `$x = 2 * $y + 1`, `$x = [1, 2, 3]`, `$x = [1:10, 2]`.

use crate::codes;
use crate::findings::Fault;
use crate::text::cursor::Cursor;
use crate::text::lexer::{Kind, Token};
use dyelog_diagnostic::Diagnostic;

/// Reads `= value` after the variable's name and keeps the value.
pub(super) fn definition<'a>(cursor: &mut Cursor<'a>, variable: Token<'a>) -> Result<(), Fault> {
    if !cursor.accept("=") {
        return Err(cursor.unexpected(&format!("`=` after `${}`", variable.text)));
    }
    let value = if cursor.accept("[") { sweep(cursor, variable)? } else { expression(cursor)? };
    if !value.is_finite() {
        let message = format!("the value of `${}` is no finite number", variable.text);
        return Err(cursor.error(variable, codes::BAD_NUMBER, message));
    }
    cursor.accept(";");
    cursor.variables.insert(variable.text, value);
    Ok(())
}

/// The first of several values.
fn sweep(cursor: &mut Cursor<'_>, variable: Token<'_>) -> Result<f64, Fault> {
    let value = expression(cursor)?;
    while !cursor.accept("]") {
        if !(cursor.accept(",") || cursor.accept(":")) {
            return Err(cursor.unexpected("`,`, `:` or `]`"));
        }
        expression(cursor)?;
    }
    let place = cursor.at(variable);
    let message = format!("`${}` has several values; the first, {value}, is taken", variable.text);
    cursor.findings.push(
        Diagnostic::warning(codes::SWEEP, place, message).with_hint("write one model for each value to solve them all"),
    );
    Ok(value)
}

/// An operator on the stack, or an open bracket.
#[derive(Clone, Copy, PartialEq)]
enum Pending {
    Open,
    Operator(char),
}

fn rank(operator: char) -> u8 {
    match operator {
        '^' => 3,
        '*' | '/' => 2,
        _ => 1,
    }
}

/// An arithmetic expression, by two stacks: depth of brackets costs memory, not stack.
fn expression(cursor: &mut Cursor<'_>) -> Result<f64, Fault> {
    let mut values: Vec<f64> = Vec::new();
    let mut pending: Vec<Pending> = Vec::new();
    let mut open = 0;
    loop {
        open += operand(cursor, &mut values, &mut pending)?;
        loop {
            if open > 0 && cursor.accept(")") {
                open -= 1;
                while let Some(Pending::Operator(operator)) = pending.pop() {
                    apply(operator, &mut values);
                }
                continue;
            }
            let Some(operator) = operator(cursor) else {
                if open > 0 {
                    return Err(cursor.unexpected("an operator or `)`"));
                }
                while let Some(Pending::Operator(operator)) = pending.pop() {
                    apply(operator, &mut values);
                }
                return Ok(values.pop().unwrap_or_default());
            };
            while let Some(&Pending::Operator(before)) = pending.last()
                && rank(before) >= rank(operator)
                && operator != '^'
            {
                pending.pop();
                apply(before, &mut values);
            }
            pending.push(Pending::Operator(operator));
            break;
        }
    }
}

/// Opening brackets, of which it gives the number, and a value.
fn operand(cursor: &mut Cursor<'_>, values: &mut Vec<f64>, pending: &mut Vec<Pending>) -> Result<usize, Fault> {
    let mut open = 0;
    loop {
        if cursor.accept("(") {
            pending.push(Pending::Open);
            open += 1;
        } else if cursor.accept("-") {
            values.push(-1.0);
            pending.push(Pending::Operator('*'));
        } else {
            values.push(cursor.number("a number or a variable")?);
            return Ok(open);
        }
    }
}

/// The operator that follows; `3 -1` is a difference.
fn operator(cursor: &mut Cursor<'_>) -> Option<char> {
    let token = cursor.peek()?;
    match token.kind {
        Kind::Sign if matches!(token.text, "+" | "-" | "*" | "/" | "^") => {
            cursor.advance();
            token.text.chars().next()
        }
        Kind::Number(_) if !token.first && token.text.starts_with(['-', '+']) => Some('+'),
        _ => None,
    }
}

fn apply(operator: char, values: &mut Vec<f64>) {
    let right = values.pop().unwrap_or_default();
    let left = values.pop().unwrap_or_default();
    values.push(match operator {
        '+' => left + right,
        '-' => left - right,
        '*' => left * right,
        '/' => left / right,
        _ => left.powf(right),
    });
}
