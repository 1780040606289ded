//! What `lua/utf8.lua` is built on: the cases and the order of Unicode's letters.

use crate::stack::{
    Function, State, check_bytes, own, push_bytes, push_functions, raise, run_chunk,
};
use icu_collator::options::{CollatorOptions, Strength};
use icu_collator::{CollatorBorrowed, CollatorPreferences};
use icu_properties::CodePointMapData;
use icu_properties::props::{GeneralCategory, GeneralCategoryGroup};
use mlua::ffi::*;
use std::cmp::Ordering;
use std::ffi::{CStr, c_int};
use std::sync::OnceLock;

const FUNCTIONS: &[(&CStr, Function)] =
    &[(c"upper", upper), (c"lower", lower), (c"compare", compare), (c"is", is)];

/// Pushes the module.
pub(crate) unsafe fn open(state: State) {
    // SAFETY: As for `stack`.
    unsafe {
        push_functions(state, FUNCTIONS);
        run_chunk(state, include_str!("../lua/utf8.lua"), c"@builtin/utf8.lua");
    }
}

/// Changes what is UTF-8; other bytes pass.
unsafe fn map(state: State, change: fn(&str) -> String) -> c_int {
    // SAFETY: As for `stack`; the text belongs to the userdata.
    unsafe {
        let bytes = check_bytes(state, 1);
        let out = &mut *own::<Vec<u8>>(state);
        for chunk in bytes.utf8_chunks() {
            out.extend_from_slice(change(chunk.valid()).as_bytes());
            out.extend_from_slice(chunk.invalid());
        }
        push_bytes(state, out);
        *out = Vec::new();
        1
    }
}

unsafe extern "C-unwind" fn upper(state: State) -> c_int {
    // SAFETY: As for `stack`.
    unsafe { map(state, str::to_uppercase) }
}

unsafe extern "C-unwind" fn lower(state: State) -> c_int {
    // SAFETY: As for `stack`.
    unsafe { map(state, str::to_lowercase) }
}

static COLLATORS: [OnceLock<Option<CollatorBorrowed<'static>>>; 2] =
    [OnceLock::new(), OnceLock::new()];

/// The collator of the root locale: with case, or of base letters alone.
fn collator(ignores_case: bool) -> Option<&'static CollatorBorrowed<'static>> {
    COLLATORS[usize::from(ignores_case)]
        .get_or_init(|| {
            let mut options = CollatorOptions::default();
            let strength = if ignores_case { Strength::Primary } else { Strength::Tertiary };
            options.strength = Some(strength);
            CollatorBorrowed::try_new(CollatorPreferences::default(), options).ok()
        })
        .as_ref()
}

/// `compare(left, right, ignores case) -> -1, 0 or 1`, by the Unicode Collation Algorithm.
unsafe extern "C-unwind" fn compare(state: State) -> c_int {
    // SAFETY: As for `stack`.
    unsafe {
        let (left, right) = (check_bytes(state, 1), check_bytes(state, 2));
        let Some(collator) = collator(lua_toboolean(state, 3) != 0) else {
            raise(state, b"utf8: there is no collation");
        };
        let number = match collator.compare_utf8(left, right) {
            Ordering::Less => -1.0,
            Ordering::Equal => 0.0,
            Ordering::Greater => 1.0,
        };
        lua_pushnumber(state, number);
        1
    }
}

/// `is(kind, code) -> boolean`: kinds are `alpha`, `digit`, `lower`, `upper`, by Unicode's categories.
unsafe extern "C-unwind" fn is(state: State) -> c_int {
    // SAFETY: As for `stack`.
    unsafe {
        let code = lua_tonumber(state, 2);
        let character =
            if (0.0..=1_114_111.0).contains(&code) { char::from_u32(code as u32) } else { None };
        let kind = check_bytes(state, 1);
        let found = character.is_some_and(|character| {
            let category = CodePointMapData::<GeneralCategory>::new().get(character);
            match kind {
                b"alpha" => GeneralCategoryGroup::Letter.contains(category),
                b"digit" => category == GeneralCategory::DecimalNumber,
                b"lower" => category == GeneralCategory::LowercaseLetter,
                _ => category == GeneralCategory::UppercaseLetter,
            }
        });
        lua_pushboolean(state, found.into());
        1
    }
}
