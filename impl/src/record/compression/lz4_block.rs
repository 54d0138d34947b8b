//! Which blocks of LZ4 are ones.
//!
//! The format has rules for the end of a block: the last sequence is of literals only, the last five bytes are literals, and the last
//! match begins twelve bytes before the end. The library that decodes here looks at none of them, and Kafka's looks at them its own
//! way, as it copies some sequences without a look at what is left. So blocks are judged here, and decoded by the library.

/// A length of four bits that goes on in further bytes.
const LONG: usize = 15;
/// The least length of a match.
const MIN_MATCH: usize = 4;
/// What has to follow a match, in input where its length goes on, and in output.
const LAST_LITERALS: usize = 5;
/// What has to follow the literals of a sequence that has a match, in input: the distance, a token and the last literals.
const INPUT_BEHIND_LITERALS: usize = 2 + 1 + LAST_LITERALS;
/// The same in output.
const OUTPUT_BEHIND_LITERALS: usize = 12;
/// A sequence with so much of input behind its token, and so much room for output, is copied without a look at the above.
const SHORTCUT_INPUT: usize = 17;
const SHORTCUT_OUTPUT: usize = 32;
/// From this distance on, a match is, too.
const SHORTCUT_DISTANCE: usize = 8;

/// How many bytes come out of a block, of which there may be `capacity`; `None` where Kafka's library refuses the block
/// (`LZ4_decompress_safe` of LZ4 1.10, which lz4-java runs), and where a distance is 0, which it takes for any bytes.
///
/// `capacity` is that of the frame, not what comes out: the end of the output counts from there.
pub(super) fn decoded_length(block: &[u8], capacity: usize) -> Option<usize> {
    let mut block = Sequences { rest: block };
    let mut out = 0_usize;
    loop {
        let token = usize::from(block.byte()?);
        let (literals, match_length) = (token >> 4, token & 0xf);
        let is_short = literals < LONG && block.rest.len() >= SHORTCUT_INPUT && out.saturating_add(SHORTCUT_OUTPUT) <= capacity;
        // A length that goes on is of so many literals at least.
        let literals = block.length(literals, LONG)?;
        let behind = block.rest.len().checked_sub(literals)?;
        out = out.checked_add(literals).filter(|out| *out <= capacity)?;
        if !is_short && (behind < INPUT_BEHIND_LITERALS || capacity - out < OUTPUT_BEHIND_LITERALS) {
            return (behind == 0).then_some(out);
        }
        block.skip(literals)?;
        let distance = block.distance()?;
        let length = MIN_MATCH + block.length(match_length, LAST_LITERALS - 1)?;
        if distance == 0 || distance > out {
            return None;
        }
        out = out.checked_add(length).filter(|out| *out <= capacity)?;
        let is_copied_unseen = is_short && match_length < LONG && distance >= SHORTCUT_DISTANCE;
        if capacity - out < LAST_LITERALS && !is_copied_unseen {
            return None;
        }
    }
}

/// What is left of a block.
struct Sequences<'a> {
    rest: &'a [u8],
}

impl Sequences<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*byte)
    }

    /// A length that begins with four bits; behind the bytes in which it goes on, so many have to be left.
    fn length(&mut self, bits: usize, left: usize) -> Option<usize> {
        let mut length = bits;
        if bits < LONG {
            return Some(length);
        }
        loop {
            let byte = self.byte().filter(|_| self.rest.len() >= left)?;
            length = length.checked_add(usize::from(byte))?;
            if byte != u8::MAX {
                return Some(length);
            }
        }
    }

    fn skip(&mut self, bytes: usize) -> Option<()> {
        self.rest = self.rest.get(bytes..)?;
        Some(())
    }

    fn distance(&mut self) -> Option<usize> {
        let (distance, rest) = self.rest.split_first_chunk::<2>()?;
        self.rest = rest;
        Some(usize::from(u16::from_le_bytes(*distance)))
    }
}
