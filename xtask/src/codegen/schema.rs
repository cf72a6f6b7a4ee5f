//! Reads the schema files; their notation is told in `crates/protocol/schemas/README.md`.

use std::fmt;

/// Versions from `min` to `max`, both inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Versions {
    pub(crate) min: i16,
    pub(crate) max: i16,
}

impl Versions {
    pub(crate) fn contains(self, version: i16) -> bool {
        (self.min..=self.max).contains(&version)
    }

    /// The versions that are in both; `None` when there are none.
    pub(crate) fn and(self, other: Self) -> Option<Self> {
        let both = Self {
            min: self.min.max(other.min),
            max: self.max.min(other.max),
        };
        (both.min <= both.max).then_some(both)
    }

    /// The smallest range that holds both.
    pub(crate) fn hull(self, other: Self) -> Self {
        Self {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }

    fn parse(text: &str) -> Result<Self, String> {
        let number = |text: &str| {
            text.parse()
                .map_err(|_| format!("'{text}' is not a version"))
        };
        if let Some(min) = text.strip_suffix('+') {
            return Ok(Self {
                min: number(min)?,
                max: i16::MAX,
            });
        }
        let (min, max) = text.split_once('-').unwrap_or((text, text));
        Ok(Self {
            min: number(min)?,
            max: number(max)?,
        })
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self { min, max: i16::MAX } => write!(f, "{min}+"),
            Self { min, max } if min == max => write!(f, "{min}"),
            Self { min, max } => write!(f, "{min}-{max}"),
        }
    }
}

/// What a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Request,
    Response,
    Header,
    Metadata,
    CoordinatorKey,
    CoordinatorValue,
    Data,
}

/// One message with its structs, the message's own first.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) kind: Kind,
    pub(crate) name: String,
    /// The API key, or the type of a stored record.
    pub(crate) id: Option<i16>,
    /// Without an unstable one.
    pub(crate) versions: Versions,
    /// [`i16::MAX`]: never.
    pub(crate) flexible_since: i16,
    pub(crate) structs: Vec<Struct>,
}

#[derive(Clone, Debug)]
pub(crate) struct Struct {
    pub(crate) name: String,
    pub(crate) fields: Vec<Field>,
}

#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) ty: Type,
    /// The versions in which it may be null.
    pub(crate) nullable: Option<Versions>,
    pub(crate) versions: Versions,
    pub(crate) tag: Option<u32>,
    pub(crate) default: Option<String>,
    pub(crate) ignorable: bool,
    /// Lengths are never compact, whatever the message's are.
    pub(crate) inflexible: bool,
    /// What an integer or string denotes.
    pub(crate) denotes: Option<String>,
    /// What the field means, where the schema says it.
    pub(crate) about: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Primitive(String),
    Struct(String),
    Array(Box<Self>),
}

const PRIMITIVES: [&str; 12] = [
    "bool", "int8", "int16", "uint16", "int32", "uint32", "int64", "float64", "string", "uuid",
    "bytes", "records",
];

impl Type {
    fn parse(text: &str) -> Self {
        match text.strip_prefix("[]") {
            Some(element) => Self::Array(Box::new(Self::parse(element))),
            None if PRIMITIVES.contains(&text) => Self::Primitive(text.to_owned()),
            None => Self::Struct(text.to_owned()),
        }
    }

    /// The struct that it is or has elements of.
    pub(crate) fn struct_name(&self) -> Option<&str> {
        match self {
            Self::Primitive(_) => None,
            Self::Struct(name) => Some(name),
            Self::Array(element) => element.struct_name(),
        }
    }
}

impl Message {
    /// The struct called `name`.
    pub(crate) fn find(&self, name: &str) -> Option<&Struct> {
        self.structs.iter().find(|it| it.name == name)
    }

    /// The message's own fields.
    pub(crate) fn root(&self) -> &Struct {
        self.structs.first().expect("a message is a struct")
    }
}

/// Reads the messages of one schema file.
pub(crate) fn parse(text: &str) -> Result<Vec<Message>, String> {
    let mut messages: Vec<Message> = Vec::new();
    // The structs that are open at each depth, as positions in the message.
    let mut open: Vec<usize> = Vec::new();
    let mut about: Option<String> = None;
    let unstable = text.contains(" latest-unstable");
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let indent = line.len() - line.trim_start().len();
        let fail = |why: String| format!("in '{line}': {why}");
        if let Some(comment) = line.trim().strip_prefix("# ") {
            about = Some(about.map_or(String::new(), |it| it + " ") + comment);
        } else if indent == 0 {
            messages.push(parse_head(&words, unstable).map_err(fail)?);
            open = vec![0];
        } else {
            let message = messages
                .last_mut()
                .ok_or_else(|| fail("no message yet".into()))?;
            open.truncate(indent / 2);
            let at = open.last().filter(|_| open.len() == indent / 2);
            let at = *at.ok_or_else(|| fail("wrong indentation".into()))?;
            let name = match words.as_slice() {
                ["struct", name, _] => Some((*name).to_owned()),
                _ => {
                    let mut field = parse_field(&words).map_err(fail)?;
                    field.about = about.take();
                    let name = field.ty.struct_name().map(str::to_owned);
                    let parent = message.structs.get_mut(at).expect("an open struct exists");
                    parent.fields.push(field);
                    name.filter(|name| message.find(name).is_none())
                }
            };
            if let Some(name) = name {
                open.push(message.structs.len());
                message.structs.push(Struct {
                    name,
                    fields: Vec::new(),
                });
            }
        }
    }
    Ok(messages)
}

fn parse_head(words: &[&str], unstable: bool) -> Result<Message, String> {
    let [kind, name, attributes @ ..] = words else {
        return Err("no name".into());
    };
    let kind = match *kind {
        "request" => Kind::Request,
        "response" => Kind::Response,
        "header" => Kind::Header,
        "metadata" => Kind::Metadata,
        "coordinator-key" => Kind::CoordinatorKey,
        "coordinator-value" => Kind::CoordinatorValue,
        "data" => Kind::Data,
        other => return Err(format!("'{other}' is no kind of message")),
    };
    let name = (*name).to_owned();
    let mut message = Message {
        kind,
        id: None,
        versions: Versions { min: 0, max: 0 },
        flexible_since: i16::MAX,
        structs: vec![Struct {
            name: name.clone(),
            fields: Vec::new(),
        }],
        name,
    };
    for attribute in attributes {
        match attribute.split_once('=') {
            Some(("key" | "id", id)) => {
                message.id = Some(id.parse().map_err(|_| format!("'{id}' is not an id"))?);
            }
            Some(("versions", versions)) => message.versions = Versions::parse(versions)?,
            Some(("flexible", "none")) => {}
            Some(("flexible", since)) => message.flexible_since = Versions::parse(since)?.min,
            Some(("listeners", _)) => {}
            None if *attribute == "latest-unstable" => {}
            _ => return Err(format!("unknown attribute '{attribute}'")),
        }
    }
    if unstable {
        message.versions.max -= 1;
    }
    Ok(message)
}

fn parse_field(words: &[&str]) -> Result<Field, String> {
    let [name, ty, versions, attributes @ ..] = words else {
        return Err("a field is a name, a type and versions".into());
    };
    let versions = Versions::parse(versions)?;
    let nullable = ty.ends_with('?').then_some(versions);
    let mut field = Field {
        name: (*name).to_owned(),
        ty: Type::parse(ty.trim_end_matches('?')),
        nullable,
        versions,
        tag: None,
        default: None,
        ignorable: false,
        inflexible: false,
        denotes: None,
        about: None,
    };
    for attribute in attributes {
        match attribute.split_once('=') {
            Some(("tag", tag)) => {
                field.tag = Some(tag.parse().map_err(|_| format!("'{tag}' is not a tag"))?);
            }
            Some(("default", value)) => field.default = Some(value.trim_matches('"').to_owned()),
            Some(("null", versions)) => field.nullable = Some(Versions::parse(versions)?),
            Some(("flexible", "none")) => field.inflexible = true,
            Some(("is", what)) => field.denotes = Some(what.to_owned()),
            None if *attribute == "ignorable" => field.ignorable = true,
            None if *attribute == "key" => {}
            _ => return Err(format!("unknown attribute '{attribute}'")),
        }
    }
    Ok(field)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "\
request FirstRequest key=1 versions=2-6 flexible=4+ latest-unstable listeners=broker
  struct Shared 0+
    Id int32 0+ is=brokerId
  # What it is for.
  Left []Shared? 0+ null=3+ default=null
  Right Shared 5+ tag=3 ignorable

response FirstResponse key=1 versions=2-6 flexible=none
  Shared []Shared 0+
    Name string 0+ default=\"\"
";

    #[test]
    fn a_file_is_read() {
        let messages = parse(TWO).expect("a legal file");
        let [request, response] = messages.as_slice() else {
            panic!("two messages");
        };
        assert_eq!((request.id, request.flexible_since), (Some(1), 4));
        // The highest version is unstable, in the answer too.
        assert_eq!(request.versions, Versions { min: 2, max: 5 });
        assert_eq!(response.versions, Versions { min: 2, max: 5 });
        assert_eq!(response.flexible_since, i16::MAX);
        let [left, right] = request.root().fields.as_slice() else {
            panic!("two fields");
        };
        assert_eq!(left.about.as_deref(), Some("What it is for."));
        assert_eq!(
            left.nullable,
            Some(Versions {
                min: 3,
                max: i16::MAX
            })
        );
        assert_eq!(left.ty.struct_name(), Some("Shared"));
        assert_eq!((right.tag, right.ignorable), (Some(3), true));
    }

    #[test]
    fn trap_46_structs_of_one_name_in_two_messages_are_two() {
        let messages = parse(TWO).expect("a legal file");
        let fields = |message: &Message| {
            let shared = message.find("Shared").expect("a struct");
            shared
                .fields
                .iter()
                .map(|it| it.name.clone())
                .collect::<Vec<_>>()
        };
        let all: Vec<_> = messages.iter().map(fields).collect();
        assert_eq!(all, [["Id"], ["Name"]]);
    }

    #[test]
    fn mistakes_are_told() {
        for (text, why) in [
            ("  Field int32 0+", "no message yet"),
            (
                "data It versions=0 flexible=none\n    Field int32 0+",
                "indentation",
            ),
            ("data It versions=0 colour=red", "colour=red"),
            (
                "data It versions=0 flexible=none\n  Field int32",
                "a field is",
            ),
            (
                "data It versions=0 flexible=none\n  Field int32 0+ colour",
                "colour",
            ),
            ("letter It versions=0", "letter"),
        ] {
            let told = parse(text).expect_err(text);
            assert!(told.contains(why), "{told}");
        }
    }

    #[test]
    fn version_ranges() {
        let versions = |text| Versions::parse(text).expect("a range");
        assert_eq!(versions("4+").and(versions("0-6")), Some(versions("4-6")));
        assert_eq!(versions("4+").and(versions("0-3")), None);
        assert_eq!(versions("1-2").hull(versions("5")), versions("1-5"));
        assert_eq!(versions("3").to_string(), "3");
        assert_eq!(versions("3+").to_string(), "3+");
        assert!(Versions::parse("x").is_err());
    }
}
