//! What the command line and the system spaces say of fields, keys and spaces.

use ladon_msgpack::{
    Error, Value, read, read_array, read_bool, read_map, read_str, read_uint, skip, take, write,
};

/// A field of a format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    name: String,
    kind: String,
    is_nullable: bool,
}

impl Field {
    /// Reads `name:type` or `name:type?`.
    pub fn parse(text: &str) -> Result<Field, String> {
        let (name, kind) = text.rsplit_once(':').ok_or("write NAME:TYPE, as in id:unsigned")?;
        let (kind, is_nullable) = match kind.strip_suffix('?') {
            Some(kind) => (kind, true),
            None => (kind, false),
        };
        Ok(Field { name: name.to_owned(), kind: kind.to_owned(), is_nullable })
    }

    /// Appends it as a format has it.
    pub fn write(&self, out: &mut Vec<u8>) {
        write::map(out, if self.is_nullable { 3 } else { 2 });
        for (key, value) in [("name", &self.name), ("type", &self.kind)] {
            write::str(out, key.as_bytes());
            write::str(out, value.as_bytes());
        }
        if self.is_nullable {
            write::str(out, b"is_nullable");
            write::bool(out, true);
        }
    }
}

/// A part of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// A name, or a number from 1 on.
    field: String,
    /// Where in the field, as `[*].name`.
    path: String,
    kind: String,
    is_nullable: bool,
}

impl Part {
    /// Reads `field:type`, `field:type?`, or either with a path behind the field, as
    /// `tags[*]:string` or `address.city:string`.
    pub fn parse(text: &str) -> Result<Part, String> {
        let (place, kind) = text.rsplit_once(':').ok_or("write FIELD:TYPE, as in id:unsigned")?;
        let (field, path) = place.split_at(place.find(['.', '[']).unwrap_or(place.len()));
        let (kind, is_nullable) = match kind.strip_suffix('?') {
            Some(kind) => (kind, true),
            None => (kind, false),
        };
        let (field, path, kind) = (field.to_owned(), path.to_owned(), kind.to_owned());
        Ok(Part { field, path, kind, is_nullable })
    }

    /// Appends it as a tuple of `_index` has it; `None` if the space has no such field.
    pub fn write(&self, space: &SpaceRow, out: &mut Vec<u8>) -> Option<()> {
        let of_name = |field: &String| {
            field.strip_prefix(&self.field).is_some_and(|rest| rest.starts_with(':'))
        };
        let number = match self.field.parse::<u64>() {
            Ok(number) => number.checked_sub(1)?,
            Err(_) => space.fields.iter().position(of_name)? as u64,
        };
        write::map(out, 3 + u32::from(!self.path.is_empty()));
        write::str(out, b"field");
        write::uint(out, number);
        write::str(out, b"type");
        write::str(out, self.kind.as_bytes());
        write::str(out, b"is_nullable");
        write::bool(out, self.is_nullable);
        if !self.path.is_empty() {
            write::str(out, b"path");
            write::str(out, self.path.as_bytes());
        }
        Some(())
    }

    /// The field as it was written.
    pub fn field(&self) -> &str {
        &self.field
    }
}

/// The kind of an index, and its options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexOptions {
    pub kind: String,
    pub is_unique: bool,
    /// Of an RTREE index; the server has values for what is not given.
    pub dimension: Option<u64>,
    pub distance: Option<String>,
}

impl IndexOptions {
    /// Appends the kind and the options as a tuple of `_index` has them.
    pub fn write(&self, out: &mut Vec<u8>) {
        write::str(out, self.kind.as_bytes());
        let given = u32::from(self.dimension.is_some()) + u32::from(self.distance.is_some());
        write::map(out, 1 + given);
        write::str(out, b"unique");
        write::bool(out, self.is_unique);
        if let Some(dimension) = self.dimension {
            write::str(out, b"dimension");
            write::uint(out, dimension);
        }
        if let Some(distance) = &self.distance {
            write::str(out, b"distance");
            write::str(out, distance.as_bytes());
        }
    }
}

/// A tuple of `_space`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpaceRow {
    pub id: u32,
    pub name: String,
    pub engine: String,
    /// `name:type` or `name:type?` each.
    pub fields: Vec<String>,
    /// The field count and the format as the tuple has them, in MessagePack.
    pub field_count: Vec<u8>,
    pub format: Vec<u8>,
    /// The pairs of its options.
    pub options: Options,
}

/// Names of options, and their values in MessagePack.
pub type Options = Vec<(Vec<u8>, Vec<u8>)>;

/// The option that says where a space is mounted.
const RESP_PREFIX: &[u8] = b"resp_prefix";

impl SpaceRow {
    /// Reads a tuple of `_space`: id, owner, name, engine, field count, flags, format.
    pub fn read(mut tuple: &[u8]) -> Result<SpaceRow, Error> {
        let tuple = &mut tuple;
        read_array(tuple)?;
        let id = u32::try_from(read_uint(tuple)?).unwrap_or(u32::MAX);
        skip(tuple)?;
        let (name, engine) = (text(tuple)?, text(tuple)?);
        let field_count = take(tuple)?.to_vec();
        let options = read_options(tuple)?;
        let format = take(&mut { *tuple })?.to_vec();
        let mut fields = Vec::new();
        for _ in 0..read_array(tuple)? {
            fields.push(read_field(tuple)?);
        }
        Ok(SpaceRow { id, name, engine, fields, field_count, format, options })
    }

    /// The prefix of Redis' keys under which it is mounted.
    pub fn prefix(&self) -> Option<String> {
        let (_, prefix) = self.options.iter().find(|(name, _)| name == RESP_PREFIX)?;
        text(&mut &prefix[..]).ok()
    }

    /// Its options, as a tuple of `_space` has them.
    pub fn options_map(&self) -> Vec<u8> {
        let mut map = Vec::new();
        write::map(&mut map, self.options.len() as u32);
        for (name, value) in &self.options {
            write::str(&mut map, name);
            map.extend_from_slice(value);
        }
        map
    }

    /// As `options_map`, with another prefix or none.
    pub fn options_with_prefix(&self, prefix: Option<&str>) -> Vec<u8> {
        let mut changed = self.clone();
        changed.options.retain(|(name, _)| name != RESP_PREFIX);
        if let Some(prefix) = prefix {
            let mut value = Vec::new();
            write::str(&mut value, prefix.as_bytes());
            changed.options.push((RESP_PREFIX.to_vec(), value));
        }
        changed.options_map()
    }
}

fn read_options(tuple: &mut &[u8]) -> Result<Options, Error> {
    let count = match read(tuple)? {
        Value::Map(count) => count,
        // An empty one, to Lua.
        _ => 0,
    };
    let mut options = Options::new();
    for _ in 0..count {
        let name = read_str(tuple)?.to_vec();
        options.push((name, take(tuple)?.to_vec()));
    }
    Ok(options)
}

/// A field of a format, as the command line takes it.
fn read_field(tuple: &mut &[u8]) -> Result<String, Error> {
    let (mut name, mut kind, mut nullable) = (String::new(), "any".to_owned(), "");
    for _ in 0..read_map(tuple)? {
        match read_str(tuple)? {
            b"name" => name = text(tuple)?,
            b"type" => kind = text(tuple)?,
            b"is_nullable" => nullable = if read_bool(tuple)? { "?" } else { "" },
            _ => skip(tuple)?,
        }
    }
    Ok(format!("{name}:{kind}{nullable}"))
}

/// A line about a tuple of `_index`: space, id, name, type, options, parts.
pub fn index_line(mut tuple: &[u8]) -> Result<(u32, String), Error> {
    let tuple = &mut tuple;
    read_array(tuple)?;
    skip(tuple)?;
    let id = u32::try_from(read_uint(tuple)?).unwrap_or(u32::MAX);
    let (name, kind) = (text(tuple)?, text(tuple)?);
    let mut unique = "unique ";
    for _ in 0..read_map(tuple)? {
        let option = read_str(tuple)?;
        match (option, read(tuple)?) {
            (b"unique", Value::Bool(false)) => unique = "",
            (_, Value::Map(_) | Value::Array(_)) => break,
            _ => {}
        }
    }
    Ok((id, format!("index {id} {name}: {unique}{kind}")))
}

fn text(tuple: &mut &[u8]) -> Result<String, Error> {
    Ok(String::from_utf8_lossy(read_str(tuple)?).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_name_fields_or_count_from_one() {
        let fields = vec!["id:unsigned".to_owned(), "name:string".to_owned()];
        let space = SpaceRow {
            id: 512,
            name: "users".into(),
            engine: "memtx".into(),
            fields,
            field_count: vec![0],
            format: vec![0x90],
            options: Vec::new(),
        };
        let check = |text: &str, expected: Option<&[u8]>| {
            let mut out = Vec::new();
            let written = Part::parse(text).unwrap().write(&space, &mut out);
            assert_eq!(written.map(|()| &out[..]), expected, "{text}");
        };
        let second = b"\x83\xa5field\x01\xa4type\xa6string\xabis_nullable\xc2";
        check("name:string", Some(second));
        check("2:string", Some(second));
        let inside = b"\x84\xa5field\x01\xa4type\xa6string\xabis_nullable\xc3\xa4path\xa5[*].a";
        check("name[*].a:string?", Some(inside));
        check("0:string", None);
        check("nam:string", None);
        assert!(Part::parse("name").is_err() && Field::parse("name").is_err());
    }

    #[test]
    fn a_format_reads_back() {
        let mut tuple = b"\x97\xcd\x02\x00\x01\xa5users\xa5memtx\x00\x80\x92".to_vec();
        Field::parse("id:unsigned").unwrap().write(&mut tuple);
        Field::parse("mail:string?").unwrap().write(&mut tuple);
        let row = SpaceRow::read(&tuple).unwrap();
        assert_eq!(row.prefix(), None);
        assert_eq!((row.id, row.fields), (512, vec!["id:unsigned".into(), "mail:string?".into()]));
    }

    #[test]
    fn a_mount_changes_no_other_option() {
        let tuple = b"\x97\xcd\x02\x00\x01\xa5users\xa5memtx\x00\x81\xa9temporary\xc3\x90";
        let row = SpaceRow::read(tuple).unwrap();
        assert_eq!(row.options_map(), b"\x81\xa9temporary\xc3");
        let mounted = row.options_with_prefix(Some("u:"));
        assert_eq!(mounted, b"\x82\xa9temporary\xc3\xabresp_prefix\xa2u:");
        let mut tuple = tuple.to_vec();
        tuple.splice(18..30, mounted);
        let row = SpaceRow::read(&tuple).unwrap();
        assert_eq!(row.prefix().as_deref(), Some("u:"));
        assert_eq!(row.options_with_prefix(None), b"\x81\xa9temporary\xc3");
    }
}
