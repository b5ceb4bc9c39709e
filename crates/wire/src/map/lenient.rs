//! Deserializers of members that clients leave out, set to null, or write as an array.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Reads a member; null counts as absent.
pub fn or_default<'de, D, T>(given: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(given)?.unwrap_or_default())
}

/// Reads a member and keeps null apart from absent.
pub fn present<'de, D, T>(given: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(given).map(Some)
}

/// Reads a member that must be an object.
pub fn object<'de, D, T>(given: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(Object::deserialize(given)?.0)
}

/// Reads a member that must be an object if it is present.
pub fn some_object<'de, D, T>(given: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(Option::deserialize(given)?.map(|Object(object)| object))
}

/// Reads a member that must be an object; null counts as absent.
pub fn object_or_default<'de, D, T>(given: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(some_object(given)?.unwrap_or_default())
}

/// Reads a member that must be a list of objects if it is present.
pub fn some_objects<'de, D, T>(given: D) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let objects = Option::<Vec<Object<T>>>::deserialize(given)?;
    Ok(objects.map(|objects| objects.into_iter().map(|Object(object)| object).collect()))
}

/// A struct that was written as an object. A derived `Deserialize` alone also accepts an array of the fields in order.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(given: D) -> Result<Self, D::Error> {
        struct Members<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
            type Value = T;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(members))
            }
        }

        given.deserialize_map(Members(PhantomData)).map(Self)
    }
}
