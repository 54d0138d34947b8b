//! SHA-256 (FIPS 180-4), by which the manifest names files that are not stored.

const INITIAL: [u32; 8] = [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

/// The digest in lower-case hexadecimal digits.
pub(crate) fn hex_digest(bytes: &[u8]) -> String {
    let constants = round_constants();
    let mut message = bytes.to_vec();
    message.push(0x80);
    message.resize(message.len().next_multiple_of(64), 0);
    if message.len() - bytes.len() < 9 {
        message.resize(message.len() + 64, 0);
    }
    let end = message.len() - 8;
    message[end..].copy_from_slice(&(bytes.len() as u64 * 8).to_be_bytes());
    let digest = message.chunks_exact(64).fold(INITIAL, |state, block| compress(state, block, &constants));
    digest.iter().map(|word| format!("{word:08x}")).collect()
}

/// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
fn round_constants() -> Vec<u32> {
    let is_prime = |n: &u128| (2..*n).all(|divisor| !n.is_multiple_of(divisor));
    let constant = |prime: u128| {
        // The cube root of the prime times 2^96 is that of the prime, times 2^32; by bisection.
        let (mut low, mut high) = (0_u128, 1 << 36);
        while high - low > 1 {
            let middle = u128::midpoint(low, high);
            if middle * middle * middle <= prime << 96 { low = middle } else { high = middle }
        }
        u32::try_from(low & 0xffff_ffff).unwrap()
    };
    (2..).filter(is_prime).take(64).map(constant).collect()
}

fn compress(state: [u32; 8], block: &[u8], constants: &[u32]) -> [u32; 8] {
    let mut words: Vec<u32> = block.chunks_exact(4).map(|word| u32::from_be_bytes(word.try_into().unwrap())).collect();
    for at in 16..64 {
        let (near, far) = (words[at - 2], words[at - 15]);
        let near = near.rotate_right(17) ^ near.rotate_right(19) ^ (near >> 10);
        let far = far.rotate_right(7) ^ far.rotate_right(18) ^ (far >> 3);
        words.push(near.wrapping_add(words[at - 7]).wrapping_add(far).wrapping_add(words[at - 16]));
    }
    let mut s = state;
    for (word, constant) in words.iter().zip(constants) {
        let sum1 = s[4].rotate_right(6) ^ s[4].rotate_right(11) ^ s[4].rotate_right(25);
        let choice = (s[4] & s[5]) ^ (!s[4] & s[6]);
        let first = s[7].wrapping_add(sum1).wrapping_add(choice).wrapping_add(*constant).wrapping_add(*word);
        let sum0 = s[0].rotate_right(2) ^ s[0].rotate_right(13) ^ s[0].rotate_right(22);
        let majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
        let second = sum0.wrapping_add(majority);
        s = [first.wrapping_add(second), s[0], s[1], s[2], s[3].wrapping_add(first), s[4], s[5], s[6]];
    }
    std::array::from_fn(|at| state[at].wrapping_add(s[at]))
}

#[test]
fn the_digests_are_those_of_the_standard() {
    let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let two_blocks = "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1";
    assert_eq!(hex_digest(b""), empty);
    assert_eq!(hex_digest(b"abc"), abc);
    assert_eq!(hex_digest(b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"), two_blocks);
}
