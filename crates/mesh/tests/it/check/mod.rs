//! What must hold for any bytes; shared with the fuzz target `mesh_messages`.

use ladon_mesh::{BadFrame, Identity, Inbox, Message, Side, Sizes};

/// So that a few frames reach the limits.
const SIZES: Sizes = Sizes { frame: 16, message: 40, link: 100 };

/// The first byte says which side of a link gets the others, and in what pieces.
pub fn check(data: &[u8]) {
    let Some((how, bytes)) = data.split_first() else { return };
    match how % 3 {
        0 => link(Side::Asks, *how, bytes),
        1 => link(Side::Answers, *how, bytes),
        _ => identity(bytes),
    }
}

/// The messages in these bytes, and with what they end. `input` comes in pieces of this length.
fn messages(side: Side, input: &[u8], piece: usize) -> (Vec<Message>, Option<BadFrame>) {
    let mut inbox = Inbox::new(side, SIZES);
    let mut found = Vec::new();
    let mut given = 0;
    for mut piece in input.chunks(piece) {
        given += piece.len();
        loop {
            match inbox.next(&mut piece) {
                Err(error) => return (found, Some(error)),
                Ok(None) => break,
                Ok(Some(message)) => found.push(message),
            }
        }
        assert!(piece.is_empty(), "all of it is taken");
        assert!(inbox.bytes() <= given.min(SIZES.link + SIZES.frame), "it keeps what came");
    }
    (found, None)
}

/// Messages do not depend on the pieces in which their bytes come, and have no more bytes.
fn link(side: Side, how: u8, bytes: &[u8]) {
    let whole = messages(side, bytes, bytes.len().max(1));
    assert_eq!(messages(side, bytes, usize::from(how) / 3 + 1), whole);
    let length = |message: &Message| match message {
        Message::Question { body, .. } | Message::Answer { body: Ok(body), .. } => body.len(),
        Message::Answer { .. } | Message::GivenUp(_) | Message::Alive | Message::Refusal(_) => 0,
    };
    assert!(whole.0.iter().map(length).sum::<usize>() <= bytes.len());
    for message in &whole.0 {
        assert!(length(message) <= SIZES.message);
        let is_answer = matches!(message, Message::Answer { .. });
        let is_question = matches!(message, Message::Question { .. } | Message::GivenUp(_));
        assert!(if side == Side::Asks { !is_question } else { !is_answer });
    }
}

/// An identity that is read is written as it was.
fn identity(bytes: &[u8]) {
    if let Some((identity, rest)) = Identity::decode(bytes) {
        assert_eq!(identity.encode(), bytes[..bytes.len() - rest.len()]);
    }
}
