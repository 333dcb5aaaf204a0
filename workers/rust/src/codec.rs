//! The codec of the contract's messages. A message that cannot be decoded is the client's error, INVALID_ARGUMENT
//! (tonic's own codec returns INTERNAL).

use std::marker::PhantomData;

use bytes::Buf;
use prost::Message;
use tonic::Status;
use tonic::codec::{BufferSettings, Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

/// Decodes `In`, encodes `Out`.
pub(crate) struct Messages<In, Out>(PhantomData<(In, Out)>);

impl<In, Out> Default for Messages<In, Out> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<In, Out> Codec for Messages<In, Out>
where
    In: Message + Default + 'static,
    Out: Message + 'static,
{
    type Encode = Out;
    type Decode = In;
    type Encoder = Writer<Out>;
    type Decoder = Reader<In>;

    fn encoder(&mut self) -> Writer<Out> {
        Writer(PhantomData)
    }

    fn decoder(&mut self) -> Reader<In> {
        Reader(PhantomData)
    }
}

pub(crate) struct Writer<Out>(PhantomData<Out>);

impl<Out: Message> Encoder for Writer<Out> {
    type Item = Out;
    type Error = Status;

    fn encode(&mut self, item: Out, target: &mut EncodeBuf<'_>) -> Result<(), Status> {
        item.encode(target).map_err(|error| Status::internal(error.to_string()))
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::default()
    }
}

pub(crate) struct Reader<In>(PhantomData<In>);

impl<In: Message + Default> Decoder for Reader<In> {
    type Item = In;
    type Error = Status;

    fn decode(&mut self, source: &mut DecodeBuf<'_>) -> Result<Option<In>, Status> {
        // One copy into an own buffer; documents are slices of it.
        let whole = source.copy_to_bytes(source.remaining());
        match In::decode(whole) {
            Ok(message) => Ok(Some(message)),
            Err(error) => Err(Status::invalid_argument(format!("the message cannot be read: {error}"))),
        }
    }
}
