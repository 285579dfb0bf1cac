//! Facts about messages, and about the interactions that they make.

use crate::datalog::value::Value;
use crate::lqn::submodel::Interaction as Request;
use crate::query::facts::{SECOND, TraceFacts};
use crate::query::messages::{Exchanges, InteractionKind};
use crate::query::schema::Own;
use crate::query::table::Table;
use crate::trace::TaskId;

impl TraceFacts<'_> {
    pub(super) fn fill_messages(&self, own: Own, exchanges: &Exchanges, table: &mut Table) {
        match own {
            Own::MessageKind | Own::MessageReply => self.fill_parts(own, exchanges, table),
            Own::MessageCause => {
                for (message, cause) in (1_u32..).zip(&exchanges.causes).filter(|(_, cause)| **cause != 0) {
                    table.push(&[Value::from(message), Value::from(*cause)]);
                }
            }
            Own::Interaction | Own::InteractionMessage | Own::InteractionCutOff => {
                self.fill_interactions(own, exchanges, table);
            }
            Own::Entry | Own::EntryMessage | Own::Request => self.fill_entries(own, exchanges, table),
            _ => self.fill_each(own, exchanges, table),
        }
    }

    fn task(&self, task: TaskId) -> Value {
        self.names.task(task).name.into()
    }

    fn fill_each(&self, own: Own, exchanges: &Exchanges, table: &mut Table) {
        let time = |seconds: f64| Value::float((seconds * SECOND).round()).filter(|time| time.as_integer().is_some());
        for (number, message) in (1_u32..).zip(&exchanges.messages) {
            let this = Value::from(number);
            match own {
                Own::Message => {
                    let receiver = message.receiver.map_or_else(|| self.intern(""), |task| self.task(task));
                    table.push(&[this, self.task(message.sender), receiver]);
                }
                Own::MessageThread => {
                    if let Some(receiver) = message.receiver {
                        let thread = |task: TaskId| Value::from(self.names.task(task).instance);
                        table.push(&[this, thread(message.sender), thread(receiver)]);
                    }
                }
                Own::MessageName if message.label.is_some() => table.push(&[this, message.label.into()]),
                Own::MessagePlace => {
                    let file = self.intern(&exchanges.files[message.file as usize]);
                    table.push(&[this, file, Value::from(message.line)]);
                }
                Own::MessageSent => time(message.sent).into_iter().for_each(|time| table.push(&[this, time])),
                Own::MessageReceived => time(message.received).into_iter().for_each(|time| table.push(&[this, time])),
                _ => {}
            }
        }
    }

    /// What messages are, by the interactions that they are part of.
    fn fill_parts(&self, own: Own, exchanges: &Exchanges, table: &mut Table) {
        let mut kind = |message: u32, kind: &str| table.push(&[Value::from(message), self.intern(kind)]);
        if own == Own::MessageKind {
            for interaction in &exchanges.interactions {
                match &*interaction.messages {
                    [only] => kind(*only, "asynchronous"),
                    [request, forwards @ .., reply] => {
                        kind(*request, "request");
                        for forward in forwards {
                            kind(*forward, "forward");
                        }
                        kind(*reply, "reply");
                    }
                    [] => {}
                }
            }
            let lost = (1..).zip(&exchanges.messages).filter(|(_, message)| message.lost);
            lost.for_each(|(message, _)| kind(message, "lost"));
            return;
        }
        for interaction in &exchanges.interactions {
            if let [request, .., reply] = *interaction.messages {
                table.push(&[Value::from(request), Value::from(reply)]);
            }
        }
    }

    fn fill_interactions(&self, own: Own, exchanges: &Exchanges, table: &mut Table) {
        for (number, interaction) in (1_u32..).zip(&exchanges.interactions) {
            let this = Value::from(number);
            match own {
                Own::Interaction => {
                    let (client, server) = (interaction.client, interaction.server);
                    let kind = self.intern(interaction.kind.word());
                    table.push(&[this, kind, self.task(client), self.task(server)]);
                }
                Own::InteractionCutOff if interaction.cut_off => table.push(&[this]),
                Own::InteractionMessage => {
                    for (place, message) in (1_u32..).zip(&interaction.messages) {
                        table.push(&[this, Value::from(place), Value::from(*message)]);
                    }
                }
                _ => {}
            }
        }
    }

    /// Each message that is no reply opens an entry, whose number is the message's.
    fn fill_entries(&self, own: Own, exchanges: &Exchanges, table: &mut Table) {
        for interaction in &exchanges.interactions {
            let opening = match &*interaction.messages {
                [only] => std::slice::from_ref(only),
                [opening @ .., _reply] => opening,
                [] => &[],
            };
            for (place, number) in opening.iter().enumerate() {
                // Messages count from 1; one that SAME could not number opens nothing that can be told.
                let Some(message) = number.checked_sub(1).and_then(|place| exchanges.messages.get(place as usize))
                else {
                    continue;
                };
                let entry = Value::from(*number);
                match own {
                    Own::Entry => {
                        let by = match (interaction.kind, place) {
                            (InteractionKind::Asynchronous, _) => Request::Asynchronous,
                            (_, 0) => Request::Rendezvous,
                            _ => Request::Forwarding,
                        };
                        let task = message.receiver.map_or_else(|| self.intern(""), |task| self.task(task));
                        table.push(&[entry, task, message.label.into(), self.intern(by.label())]);
                    }
                    Own::EntryMessage => table.push(&[entry, entry]),
                    _ => {
                        let cause = exchanges.causes[*number as usize - 1];
                        if cause != 0 {
                            table.push(&[Value::from(cause), entry]);
                        }
                    }
                }
            }
        }
    }
}
