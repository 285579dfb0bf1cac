//! 128-bit digests that are the same on every machine and in every run.

use crate::submodel::{EntryKey, Interaction};

/// A running digest of words; two lanes of multiply-and-rotate with different odd constants (after the finaliser of
/// MurmurHash3). Not meant to resist an adversary, only to keep millions of entries apart.
#[derive(Clone, Copy, Debug)]
pub struct Digest(u64, u64);

impl Digest {
    /// The digest of a kind of thing: different kinds never share a digest by their words alone.
    pub fn of(kind: u64) -> Self {
        Self(0x9e37_79b9_7f4a_7c15 ^ kind, 0xc2b2_ae3d_27d4_eb4f ^ kind.rotate_left(32)).word(kind)
    }

    /// The same with one more word.
    #[must_use]
    #[inline]
    pub fn word(self, word: u64) -> Self {
        Self(
            mix((self.0 ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd).rotate_left(29)),
            mix((self.1.rotate_left(17) ^ word).wrapping_mul(0xc4ce_b9fe_1a85_ec53)),
        )
    }

    /// The same with a key.
    #[must_use]
    #[inline]
    pub fn key(self, key: EntryKey) -> Self {
        self.word(key.0 as u64).word((key.0 >> 64) as u64)
    }

    /// The same with a text.
    #[must_use]
    pub fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes())
    }

    /// The same with bytes.
    #[must_use]
    pub fn bytes(self, bytes: &[u8]) -> Self {
        let mut digest = self.word(bytes.len() as u64);
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            digest = digest.word(u64::from_le_bytes(word));
        }
        digest
    }

    /// Of a name, in one word.
    pub fn of_name(name: &str) -> u64 {
        Self::of(1).text(name).short()
    }

    /// Of an entry that its task, type and service tell from others. Task and service as [`Digest::of_name`] has them.
    pub fn of_entry(task: u64, instance: u32, interaction: Interaction, service: u64) -> Self {
        Self::of(3).word(task).word(u64::from(instance)).word(interaction as u64).word(service)
    }

    /// As a key.
    pub fn finish(self) -> EntryKey {
        EntryKey((u128::from(mix(self.0 ^ self.1)) << 64) | u128::from(mix(self.1.wrapping_add(self.0))))
    }

    /// As one word.
    pub fn short(self) -> u64 {
        mix(self.0 ^ self.1.rotate_left(32))
    }
}

#[inline]
fn mix(mut word: u64) -> u64 {
    word ^= word >> 33;
    word = word.wrapping_mul(0xff51_afd7_ed55_8ccd);
    word ^= word >> 33;
    word
}
