//! Pieces keep their bytes, and memory goes back.

use super::shard::Shard;
use super::*;
use allocator_api2::vec::Vec as PieceVec;

#[test]
fn sizes_are_the_allocators() {
    let small = [(0, 0), (1, 8), (64, 64), (65, 80), (80, 80), (128, 128)];
    let pieces = [(129, 144), (320, 320), (540, 544), (1200, 1200), (1201, 1216), (2048, 2048)];
    let large = [(2049, 2560), (4096, 4096), (4097, 5120)];
    for (needed, given) in small.into_iter().chain(pieces).chain(large) {
        assert_eq!(Pieces::rounded(needed), given, "{needed}");
    }
}

#[test]
fn what_fits_a_size_of_the_global_allocator_is_no_piece() {
    for fits in [128, 160, 249, 320, 1009, 1024, 1280, 2048, 2049] {
        assert!(!is_piece(fits), "{fits}");
    }
    for piece in [129, 144, 161, 257, 1008, 1025, 1030, 1264, 2032] {
        assert!(is_piece(piece), "{piece}");
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
            let piece = shard.allocate(7, size).unwrap();
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
                shard.free(piece);
            }
        }
    }
    for (piece, ..) in live {
        // SAFETY: allocated above, freed once.
        unsafe { shard.free(piece) };
    }
    shard.clear();
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
