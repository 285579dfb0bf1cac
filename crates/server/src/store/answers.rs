//! Who was found to answer whom late.

use dyelog::lqn::submodel::EntryKey;

use super::StoreError;
use super::database::Database;
use crate::late::{Answer, Answers};

/// Kept of them at most, the most frequent: it is few names of services that ask each other.
const MOST: i64 = 4096;

/// Adds to what was found before.
pub fn write(database: &dyn Database, answers: &Answers, clock: u64) -> Result<(), StoreError> {
    for (Answer { caller, peer, callee }, seen) in answers {
        let [caller, peer, callee] = [caller, peer, callee].map(|key| key.0.to_be_bytes());
        database.run(
            "INSERT INTO answers (caller, peer, callee, seen, touched) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (caller, peer, callee) DO UPDATE SET seen = answers.seen + excluded.seen, touched = excluded.touched",
            &[caller[..].into(), peer[..].into(), callee[..].into(), (*seen).into(), clock.into()],
        )?;
    }
    Ok(())
}

/// All of it.
pub fn read(database: &dyn Database) -> Result<Answers, StoreError> {
    let mut answers = Answers::new();
    let sql =
        format!("SELECT caller, peer, callee, seen FROM answers ORDER BY seen DESC, caller, peer, callee LIMIT {MOST}");
    database.each(&sql, &[], &mut |row| {
        let key = |at| {
            let bytes = <[u8; 16]>::try_from(row.bytes(at)?);
            bytes
                .map(|bytes| EntryKey(u128::from_be_bytes(bytes)))
                .map_err(|_| StoreError::Damaged("who answers whom".to_owned()))
        };
        answers.insert(Answer { caller: key(0)?, peer: key(1)?, callee: key(2)? }, row.unsigned(3)?);
        Ok(())
    })?;
    Ok(answers)
}
