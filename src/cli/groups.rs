//! The commands of the help, in groups by purpose.

use clap::Command;

/// Columns of help at most.
pub const WIDTH: usize = 100;

/// Columns before what a command does.
const INDENT: usize = 15;

/// A heading, and its commands in the order in which a new user needs them.
const GROUPS: [(&str, &[&str]); 4] = [
    (
        "Everyday",
        &[
            "solve",
            "simulate",
            "whatif",
            "search",
            "bottleneck",
            "report",
            "model",
            "config",
            "draw",
            "calibrate",
            "validate",
            "serve",
            "period",
            "profile",
            "impact",
        ],
    ),
    ("Checking", &["trace", "lqn", "explain", "diff", "test", "compare"]),
    ("For authors of rules", &["rules", "query", "matches", "why-not", "coverage", "merge"]),
    ("The program itself", &["completions", "man"]),
];

/// The command with its subcommands in groups, in help so wide.
pub fn grouped(command: Command, width: usize) -> Command {
    let mut text = String::new();
    for (heading, names) in GROUPS {
        let own: Vec<&Command> = names.iter().filter_map(|name| command.find_subcommand(name)).collect();
        group(&mut text, heading, own.iter().map(|own| (own.get_name(), about(own))), width);
    }
    let others = command.get_subcommands().filter(|own| !is_grouped(own.get_name()) && !own.is_hide_set());
    group(&mut text, "Other commands", others.map(|own| (own.get_name(), about(own))), width);
    // Braces would be read as tags, and names and texts have none.
    command.help_template(format!(
        "{{before-help}}{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{text}\u{1b}[1m\u{1b}[4mOptions:\u{1b}[0m\n\
         {{options}}{{after-help}}"
    ))
}

/// Whether a command has a group.
fn is_grouped(name: &str) -> bool {
    GROUPS.iter().any(|(_, names)| names.contains(&name))
}

fn about(command: &Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default()
}

fn group<'c>(text: &mut String, heading: &str, own: impl Iterator<Item = (&'c str, String)>, width: usize) {
    let mut own = own.peekable();
    if own.peek().is_none() {
        return;
    }
    text.push_str(&format!("\u{1b}[1m\u{1b}[4m{heading}:\u{1b}[0m\n"));
    for (name, does) in own {
        let mut line = format!("  \u{1b}[1m{name}\u{1b}[0m{}", " ".repeat(INDENT.saturating_sub(2 + name.len())));
        let mut used = INDENT;
        for (number, word) in does.split(' ').enumerate() {
            if number > 0 && used + 1 + word.chars().count() > width {
                line.push_str(&format!("\n{}", " ".repeat(INDENT)));
                used = INDENT;
            } else if number > 0 {
                line.push(' ');
                used += 1;
            }
            line.push_str(word);
            used += word.chars().count();
        }
        text.push_str(&line);
        text.push('\n');
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::is_grouped;

    #[test]
    fn every_command_has_a_group() {
        let command = crate::cli::command();
        let without: Vec<&str> =
            command.get_subcommands().map(clap::Command::get_name).filter(|name| !is_grouped(name)).collect();
        assert!(without.is_empty(), "{without:?}");
    }
}
