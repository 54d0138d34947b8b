// Batches written by the record classes of Apache Kafka 4.3.1, in hexadecimal: the 61 bytes of the header, then the
// records. The last three, two barriers and a marker, were put together by hand from the layout in KIP-1279.

use bytes::Bytes;

/// A batch and its size in bytes.
pub(crate) struct Vector {
    pub(crate) name: &'static str,
    pub(crate) size: usize,
    pub(crate) header: &'static str,
    pub(crate) records: &'static str,
}

impl Vector {
    /// The batch.
    pub(crate) fn bytes(&self) -> Bytes {
        let digits: Vec<u8> = (self.header.bytes().chain(self.records.bytes()))
            .map(|digit| char::from(digit).to_digit(16).expect("a hexadecimal digit") as u8)
            .collect();
        let bytes: Bytes = digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect();
        assert_eq!(bytes.len(), self.size, "{}", self.name);
        bytes
    }
}

/// A plain batch: three records with headers, a null key, a null value, an earlier timestamp.
pub(crate) const PLAIN: Vector = Vector {
    name: "PLAIN",
    size: 97,
    header: "00000000000000640000005500000007029ff9c3f10000000000020000018bcfe568000000018bcfe56805ffffffffffffffffffffffffffff00000003",
    records: "22000000046b310476310402680278026e0110000a02010476320010000504046b330100",
};

/// Two records of an idempotent producer.
pub(crate) const IDEMPOTENT: Vector = Vector {
    name: "IDEMPOTENT",
    size: 81,
    header: "00000000000000000000004500000005024e67c3320000000000010000018bcfe568000000018bcfe56800000000000000126700030000000a00000002",
    records: "12000000046b6102610012000002046b62026200",
};

/// One record of a transactional producer.
pub(crate) const TRANSACTIONAL: Vector = Vector {
    name: "TRANSACTIONAL",
    size: 71,
    header: "00000000000000020000003b00000005020576d1e60010000000000000018bcfe568000000018bcfe56800000000000000126700030000000c00000001",
    records: "12000000046b63026300",
};

/// A COMMIT marker.
pub(crate) const COMMIT: Vector = Vector {
    name: "COMMIT",
    size: 78,
    header: "0000000000000003000000420000000502a8da87310030000000000000018bcfe568000000018bcfe5680000000000000012670003ffffffff00000001",
    records: "2000000008000000010c00000000000900",
};

/// An ABORT marker.
pub(crate) const ABORT: Vector = Vector {
    name: "ABORT",
    size: 78,
    header: "00000000000000030000004200000005025ce451790030000000000000018bcfe568000000018bcfe5680000000000000012670003ffffffff00000001",
    records: "2000000008000000000c00000000000900",
};

/// KRaft: leader change.
pub(crate) const LEADER_CHANGE: Vector = Vector {
    name: "LEADER_CHANGE",
    size: 96,
    header: "0000000000000000000000540000000502725319f00020000000000000018bcfe568000000018bcfe56800ffffffffffffffffffffffffffff00000001",
    records: "4400000008000000023000000000000103000000010000000002000200000001000000",
};

/// KRaft: snapshot header.
pub(crate) const SNAPSHOT_HEADER: Vector = Vector {
    name: "SNAPSHOT_HEADER",
    size: 83,
    header: "0000000000000000000000470000000502c7ac78040020000000000000018bcfe568000000018bcfe56800ffffffffffffffffffffffffffff00000001",
    records: "2a00000008000000031600000000018bcfe568000000",
};

/// KRaft: snapshot footer.
pub(crate) const SNAPSHOT_FOOTER: Vector = Vector {
    name: "SNAPSHOT_FOOTER",
    size: 75,
    header: "00000000000000000000003f00000005028f6608e60020000000000000018bcfe568000000018bcfe56800ffffffffffffffffffffffffffff00000001",
    records: "1a00000008000000040600000000",
};

/// KRaft: version 1.
pub(crate) const KRAFT_VERSION: Vector = Vector {
    name: "KRAFT_VERSION",
    size: 77,
    header: "0000000000000000000000410000000502a89c55860020000000000000018bcfe568000000018bcfe56800ffffffffffffffffffffffffffff00000001",
    records: "1e00000008000000050a000000010000",
};

/// KRaft: one voter with one endpoint.
pub(crate) const KRAFT_VOTERS: Vector = Vector {
    name: "KRAFT_VOTERS",
    size: 110,
    header: "0000000000000000000000620000000502372d0b840020000000000000018bcfe568000000018bcfe56800ffffffffffffffffffffffffffff00000001",
    records: "6000000008000000064c000002000000010000000000000001000000000000000202024302682385000000000100000000",
};

/// A control batch of type 7 whose value is no complete barrier value: the tagged fields are missing.
pub(crate) const TYPE_7_INCOMPLETE: Vector = Vector {
    name: "TYPE_7_INCOMPLETE",
    size: 75,
    header: "00000000000000040000003f0000000502a8785b4b0020000000000000018bcfe568000000018bcfe56800ffffffffffffffffffffffffffff00000001",
    records: "1a00000008000000070600000100",
};

/// A barrier whose source cluster id is empty.
pub(crate) const BARRIER_EMPTY_ID: Vector = Vector {
    name: "BARRIER_EMPTY_ID",
    size: 76,
    header: "0000000000000004000000400000000502d7926ad10020000000000000018bcfe568000000018bcfe56800ffffffffffffffffffffffffffff00000001",
    records: "1c0000000800000007080000010000",
};

/// A barrier with a source cluster id.
pub(crate) const BARRIER_WITH_ID: Vector = Vector {
    name: "BARRIER_WITH_ID",
    size: 98,
    header: "000000000000000400000056000000050281c8e6010020000000000000018bcfe568000000018bcfe56800ffffffffffffffffffffffffffff00000001",
    records: "48000000080000000734000017414141414141414141414541414141414141414141670000",
};

/// What compaction leaves of a batch that has lost all its records.
pub(crate) const EMPTY_HEADER: Vector = Vector {
    name: "EMPTY_HEADER",
    size: 61,
    header: "0000000000000064000000310000000502e2c4a67d000000000004ffffffffffffffff0000018bcfe56800000000000000126700030000000a00000000",
    records: "",
};

/// A tombstone with a delete horizon.
pub(crate) const DELETE_HORIZON: Vector = Vector {
    name: "DELETE_HORIZON",
    size: 70,
    header: "00000000000000640000003a00000005023a7f46b20040000000000000018bcfe56be80000018bcfe56800ffffffffffffffffffffffffffff00000001",
    records: "1000cf0f00026b0100",
};

/// KIP-1279: a barrier of the later layout, without a source cluster id.
pub(crate) const BARRIER_VERSION_ONLY: Vector = Vector {
    name: "BARRIER_VERSION_ONLY",
    size: 75,
    header: "00000000000000510000003f0000000602fd99d6dc0020000000000000019d0aa3cc000000019d0aa3cc00ffffffffffffffffffffffffffff00000001",
    records: "1a00000008000000070600000000",
};

/// KIP-1279: the same barrier in the earlier layout.
pub(crate) const BARRIER_WITH_KIP_ID: Vector = Vector {
    name: "BARRIER_WITH_KIP_ID",
    size: 98,
    header: "0000000000000051000000560000000602a83a7f610020000000000000019d0aa3cc000000019d0aa3cc00ffffffffffffffffffffffffffff00000001",
    records: "480000000800000007340000174d6b55334f4556424e5463774e544a454e444d3251670000",
};

/// KIP-1279: the ABORT marker in front of it.
pub(crate) const ABORT_BEFORE_BARRIER: Vector = Vector {
    name: "ABORT_BEFORE_BARRIER",
    size: 78,
    header: "000000000000005000000042000000060205a643f10030000000000000019d0aa3cc000000019d0aa3cc0000000000000000050007ffffffff00000001",
    records: "2000000008000000000c00000000000000",
};

/// All of them.
pub(crate) const VECTORS: &[Vector] = &[
    PLAIN,
    IDEMPOTENT,
    TRANSACTIONAL,
    COMMIT,
    ABORT,
    LEADER_CHANGE,
    SNAPSHOT_HEADER,
    SNAPSHOT_FOOTER,
    KRAFT_VERSION,
    KRAFT_VOTERS,
    TYPE_7_INCOMPLETE,
    BARRIER_EMPTY_ID,
    BARRIER_WITH_ID,
    EMPTY_HEADER,
    DELETE_HORIZON,
    BARRIER_VERSION_ONLY,
    BARRIER_WITH_KIP_ID,
    ABORT_BEFORE_BARRIER,
];
