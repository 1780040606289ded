//! Pieces keep their bytes, and memory goes back.

use super::shard::Shard;
use super::*;
use allocator_api2::vec::Vec as PieceVec;

#[test]
fn sizes_are_near() {
    let small = [(0, 0), (1, 8), (64, 64), (65, 80), (80, 80), (128, 128)];
    let pieces = [(129, 144), (320, 320), (540, 544), (1201, 1216), (2049, 2176), (5000, 5120)];
    let large = [(32 << 10, 32 << 10), ((32 << 10) + 1, 40 << 10)];
    for (needed, given) in small.into_iter().chain(pieces).chain(large) {
        assert_eq!(Pieces::rounded(needed), given, "{needed}");
        assert_eq!(Pieces::rounded(given), given, "{needed}");
    }
}

/// Frees a piece; returns its slab if that is now empty.
///
/// # Safety
/// As for [`Shard::free`].
unsafe fn free(shard: &mut Shard, piece: NonNull<u8>, class: usize) {
    // SAFETY: by contract; an empty slab is nobody's.
    unsafe {
        if let Some(slab) = shard.free(piece, class) {
            SLABS.free(slab);
        }
    }
}

#[test]
fn pieces_do_not_overlap_and_slabs_go_back() {
    let rounds = if cfg!(miri) { 300 } else { 60_000 };
    let mut shard = Shard::new();
    let mut live: Vec<(NonNull<u8>, usize, u8)> = Vec::new();
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    for round in 0..rounds {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let grows = round < rounds / 2;
        if (random % 10 < 7) == grows || live.is_empty() {
            let size = GLOBAL_MAX + 1 + (random >> 8) as usize % (PIECE_MAX - GLOBAL_MAX);
            let piece = shard.allocate(7, classes::of_bytes(size)).unwrap();
            assert!(piece.as_ptr().addr().is_multiple_of(STEP_BYTES));
            // SAFETY: just allocated with this size.
            unsafe { piece.as_ptr().write_bytes(round as u8, size) };
            live.push((piece, size, round as u8));
        } else {
            let (piece, size, mark) = live.swap_remove((random >> 8) as usize % live.len());
            // SAFETY: allocated above, freed once.
            unsafe {
                assert_eq!(shard::of_piece(piece), 7);
                let bytes = std::slice::from_raw_parts(piece.as_ptr(), size);
                assert!(bytes.iter().all(|&byte| byte == mark));
                free(&mut shard, piece, classes::of_bytes(size));
            }
        }
    }
    for (piece, size, _) in live {
        // SAFETY: allocated above, freed once.
        unsafe { free(&mut shard, piece, classes::of_bytes(size)) };
    }
    shard.assert_empty();
}

/// What is left of many pieces is packed together after two moves.
#[test]
fn moving_what_is_sparse_empties_slabs() {
    let count = if cfg!(miri) { 500 } else { 20_000 };
    let (mut shard, class) = (Shard::new(), classes::of_bytes(3000));
    let mut left = Vec::new();
    let all: Vec<_> = (0..count).map(|_| shard.allocate(0, class).unwrap()).collect();
    for (number, piece) in all.into_iter().enumerate() {
        // SAFETY: allocated above, written within its size, freed once.
        unsafe {
            piece.cast::<u64>().write(number as u64);
            if (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 & 0xff < 26 {
                left.push((number as u64, piece));
            } else {
                free(&mut shard, piece, class);
            }
        }
    }
    let before = shard.totals();
    for _ in 0..2 {
        for (_, piece) in &mut left {
            // SAFETY: a live piece, moved and freed once.
            unsafe {
                if shard.is_sparse(*piece) {
                    let moved = shard.allocate(0, class).unwrap();
                    moved.copy_from_nonoverlapping(*piece, 3000);
                    free(&mut shard, std::mem::replace(piece, moved), class);
                }
            }
        }
    }
    let after = shard.totals();
    assert_eq!(before.live, after.live);
    assert!(before.excess > 3 * before.live, "{before:?}");
    assert!(after.excess <= after.live / 10 + shard::SLAB_BYTES, "{after:?}");
    for (number, piece) in left {
        // SAFETY: live, and freed once.
        unsafe {
            assert_eq!(piece.cast::<u64>().read(), number);
            free(&mut shard, piece, class);
        }
    }
    shard.assert_empty();
}

#[test]
fn values_are_freed_by_other_threads() {
    let values = if cfg!(miri) { 60 } else { 20_000 };
    let (sender, receiver) = std::sync::mpsc::channel::<PieceVec<u8, Pieces>>();
    let dropper = std::thread::spawn(move || {
        for (number, value) in receiver.into_iter().enumerate() {
            assert!(value.iter().all(|&byte| byte == number as u8));
        }
    });
    for number in 0..values {
        let mut value = PieceVec::new_in(Pieces);
        value.resize(number % 3000, number as u8);
        sender.send(value).unwrap();
    }
    drop(sender);
    dropper.join().unwrap();
}

#[test]
#[should_panic = "a piece is freed as it was allocated"]
fn a_piece_is_not_freed_as_another_size() {
    let mut shard = Shard::new();
    let piece = shard.allocate(0, classes::of_bytes(3000)).unwrap();
    // SAFETY: not used; the size is what the test is about.
    unsafe { free(&mut shard, piece, classes::of_bytes(2000)) };
}
