//! A rule file to begin with, and a golden trace that it fits.

/// Whether a word can name a template: a letter or underscore, then letters, digits and underscores.
pub fn is_name(word: &str) -> bool {
    word.len() <= 60
        && word != "_"
        && word.chars().next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && word.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
}

/// A rule file with one template of that name, commented, in the one style.
pub fn rules(name: &str) -> String {
    RULES.replace("NAME", name)
}

/// A trace in which the template of [`rules`] matches once.
pub fn trace(name: &str) -> String {
    TRACE.replace("NAME", name)
}

const RULES: &str = r#"// A template to start from: a message whose sender does not wait. Change it to the interaction that you mean.
//
//   dyelog rules check FILE     what is wrong with it, and what is doubtful
//   dyelog rules fmt FILE       puts it into the one style
//   dyelog rules draw NAME      the picture of it
//   dyelog test FOLDER          compares the models of its traces with those accepted

/// What the interaction is, in a sentence: a tells b something and goes on.
template NAME {
  // Templates are tried from the lowest order up; the shipped ones have 0 to 9.
  order -1
  match {
    // A node is `kind [scenario, thread, thread node counter | task, task node counter]`. The kinds are Be, Ac, Ed, Fk(thread)
    // and Jn(thread). One variable is one value wherever it stands. e1 is the node at which matching starts.
    e1 = Fk(q) [j, k, m | a, v ] { name: "NAME" }
    e2 = Be    [j, q, 1 | b, w2]
  }
  // What else must hold; relations that rules below define can be asked, too.
  where { a != b }
  model {
    // E is the entry that e1 belongs to. S is a new one: R waits for a reply, A does not, F was forwarded.
    S := newEntry(A, b)
    addRequest(E, S)
    // The rest of thread q is work of S.
    addTrigger([j, q, 2 | b, w2+1], S)
  }
}
"#;

const TRACE: &str = "# The sender tells the receiver something and goes on.
operation example run=1
example,1,1,Be            | sender,1    t=0
example,1,2,Ac            | sender,2    t=0.001 cpu=0.001
example,1,3,Fk(example,2) | sender,3    t=0.002 name=NAME
example,1,4,Ac            | sender,4    t=0.003 cpu=0.001
example,1,5,Ed            | sender,5    t=0.004
example,2,1,Be            | receiver,1  t=0.003
example,2,2,Ac            | receiver,2  t=0.004 cpu=0.002
example,2,3,Ed            | receiver,3  t=0.006
";

#[cfg(test)]
mod tests {
    use super::{is_name, rules};
    use crate::datalog::syntax::format;

    #[test]
    fn the_skeleton_is_in_the_one_style() {
        let text = rules("ping");
        assert_eq!(format(&"ping.dl".into(), &text).expect("it has no errors"), text);
        assert!(is_name("ping_2") && !is_name("2") && !is_name("a-b") && !is_name("") && !is_name("_"));
    }
}
