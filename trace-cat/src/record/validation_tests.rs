//! The usual kind of records is recognised, and never where the decoder finds an error.

use super::*;
use crate::testing::seeded_random::{SeededRandom, fuzz_time};

const LINES: [&[u8]; 4] = [
    b"1795174740:544763329:0019955:0019953:0x7fc5de3f86c0:02:02:1:0x559469ed90a0:0:0:0:0",
    b"1795174740:544763329:0019955:0019953:0x7fc5de3f86c0:12:99:2:0x5:1234567890:16:0:0xffffffffffffffff",
    b"1795174740:544763329:0019955:0019953:0x7fc5de3f86c0:07:02:2:-1:18446744073709551615:0:0:0",
    b"1795174740:544763329:0019955:0019953:0xff7fc5de3f86c0:01:04:0:0:0:0:0:0",
];

fn is_usual(line: &[u8]) -> bool {
    FieldOffsets::of_usual(line).is_some()
}

#[test]
fn usual_records_are_recognised() {
    assert_eq!(LINES.map(is_usual), [true, true, false, false]);
    for line in LINES {
        assert_eq!(validate(line), Ok(()));
    }
    let line = |arguments: &str| [&LINES[0][..A1_OFFSET], arguments.as_bytes()].concat();
    for (arguments, usual) in [
        ("0x10:0:1795174740000001500:0:0", true),
        ("-11:0:0:0:0", true),
        ("-999999999999999999:0:0:0:0", true),
        ("-9223372036854775808:0:0:0:0", false),
        ("0x7fc5de3f86c0:0x7fc5de3f86c0:0x7fc5de3f86c0:0x7fc5de3f86c0:123", true),
        ("0x7fc5de3f86c0:0x7fc5de3f86c0:0x7fc5de3f86c0:0x7fc5de3f86c0:1234", false),
    ] {
        assert_eq!(is_usual(&line(arguments)), usual, "{arguments}");
        assert_eq!(validate(&line(arguments)), Ok(()));
    }
}

#[test]
fn arguments_are_valid_up_to_the_widest() {
    let head = std::str::from_utf8(&LINES[0][..A1_OFFSET]).unwrap();
    for (argument, valid) in [
        ("9999999999999999999", true),
        ("18446744073709551615", true),
        ("18446744073709551616", false),
        ("99999999999999999999", false),
        ("000000000000000000001", true),
        ("0xffffffffffffffff", true),
        ("0x1ffffffffffffffff", false),
        ("0xg", false),
        ("0x", false),
        ("", false),
        ("-1", true),
        ("-", false),
        ("-0", false),
        ("-01", true),
        ("-0x1", false),
        ("1-1", false),
        ("1x1", false),
        ("00x1", false),
        ("0x1x1", false),
        ("1a", false),
    ] {
        for place in 0..5 {
            let mut arguments = ["0"; 5];
            arguments[place] = argument;
            let line = format!("{head}{}", arguments.join(":"));
            assert_eq!(validate(line.as_bytes()).is_ok(), valid, "{line}");
            assert_eq!(Record::parse(line.as_bytes()).is_ok(), valid, "{line}");
            assert_eq!(FieldOffsets::new(line.as_bytes()).is_some(), valid, "{line}");
        }
    }
}

#[test]
fn no_record_is_recognised_that_the_decoder_refuses() {
    let mut random = SeededRandom::seeded("check", 1);
    let until = fuzz_time();
    let mut rounds = 0;
    let (mut accepted, mut refused) = (0, 0);
    while rounds < 200_000 || until.is_some_and(|end| std::time::Instant::now() < end) {
        rounds += 1;
        let mut line = LINES[random.below(LINES.len())].to_vec();
        for _ in 0..random.below(4) {
            random.mutate(&mut line, b"0123456789abcdefx:-\r\0A");
        }
        let truth = Record::parse(&line);
        if is_usual(&line) {
            accepted += 1;
            assert!(truth.is_ok(), "{}", line.escape_ascii());
        }
        refused += usize::from(truth.is_err());
        assert_eq!(validate(&line), truth.map(|_| ()));
    }
    assert!(accepted > 1000 && refused > 1000, "{accepted} {refused}");
}

#[test]
fn the_usual_way_and_the_decoders_lead_to_the_same_offsets() {
    let mut random = SeededRandom::seeded("offsets", 6);
    let head = "1795174740:544763329:0019955:0000007:0x7fc5de3f86c0:02:30:1";
    let (mut usual, mut refused) = (0, 0);
    for _ in 0..50_000 {
        let argument = |random: &mut SeededRandom| match random.below(4) {
            0 => format!("{:#x}", random.next() >> random.below(64)),
            1 => (random.next() as i64 >> random.below(64)).to_string(),
            _ => "0".to_owned(),
        };
        let arguments: Vec<String> = (0..5).map(|_| argument(&mut random)).collect();
        let mut line = format!("{head}:{}", arguments.join(":")).into_bytes();
        for _ in 0..random.below(3) {
            random.mutate(&mut line, b"0123456789:x-af\x1b\"");
        }
        match (FieldOffsets::of_usual(&line), FieldOffsets::of_any(&line)) {
            (Some(offsets), any) => {
                assert_eq!(Some(offsets), any, "{}", line.escape_ascii());
                usual += 1;
            }
            (None, any) => refused += usize::from(any.is_none()),
        }
    }
    assert!(usual > 1000 && refused > 1000, "{usual} {refused}");
}
