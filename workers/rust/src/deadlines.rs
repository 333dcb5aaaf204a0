//! The timeout of a call: `grpc-timeout` on `Review`, `PolicyCall.timeout` on the stream.

use std::time::Duration;

use tonic::Status;
use tonic::metadata::MetadataMap;

/// A longer timeout (31 years) counts as none: tokio's clock cannot represent every sum.
const LONGEST: Duration = Duration::from_secs(1_000_000_000);

/// The timeout of a unary call: "Timeout → `grpc-timeout` TimeoutValue TimeoutUnit; TimeoutValue → positive integer as ASCII
/// string of at most 8 digits; TimeoutUnit → H / M / S / m / u / n" (gRPC over HTTP/2).
pub(crate) fn timeout_of(metadata: &MetadataMap) -> Result<Option<Duration>, Status> {
    let Some(value) = metadata.get("grpc-timeout") else { return Ok(None) };
    let text = value.to_str().unwrap_or_default();
    let wrong = || Status::invalid_argument("grpc-timeout: must be up to 8 digits and one of H, M, S, m, u, n");
    let (digits, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(wrong)?;
    if digits.len() > 8 || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(wrong());
    }
    let count: u64 = digits.parse().map_err(|_| wrong())?;
    let timeout = match unit {
        "H" => Duration::from_secs(count * 3600),
        "M" => Duration::from_secs(count * 60),
        "S" => Duration::from_secs(count),
        "m" => Duration::from_millis(count),
        "u" => Duration::from_micros(count),
        "n" => Duration::from_nanos(count),
        _ => return Err(wrong()),
    };
    Ok((timeout < LONGEST).then_some(timeout))
}

/// The timeout of a call on the stream; None: the call ends with the stream. A negative timeout is already over.
pub(crate) fn timeout_in(call: &prost_types::Duration) -> Option<Duration> {
    let nanos = i128::from(call.seconds) * 1_000_000_000 + i128::from(call.nanos);
    let nanos = u128::try_from(nanos).unwrap_or_default();
    let seconds = u64::try_from(nanos / 1_000_000_000).unwrap_or(u64::MAX);
    let timeout = Duration::new(seconds, u32::try_from(nanos % 1_000_000_000).unwrap_or_default());
    (timeout < LONGEST).then_some(timeout)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Option<Duration>, tonic::Code> {
        let mut metadata = MetadataMap::new();
        metadata.insert("grpc-timeout", text.parse().expect("ASCII"));
        timeout_of(&metadata).map_err(|status| status.code())
    }

    /// Every unit is accepted; an invalid timeout is an error, not the absence of a deadline.
    #[test]
    fn deadlines_are_those_of_grpc() {
        for (text, timeout) in [
            ("1H", Duration::from_secs(3600)),
            ("2M", Duration::from_secs(120)),
            ("3S", Duration::from_secs(3)),
            ("99999999m", Duration::from_millis(99_999_999)),
            ("5u", Duration::from_micros(5)),
            ("0n", Duration::ZERO),
        ] {
            assert_eq!(of(text), Ok(Some(timeout)), "{text}");
        }
        assert_eq!(of("99999999H"), Ok(None), "counts as none");
        for text in ["", "1", "S", "1s", "-1S", "+1S", "123456789S", "1.5S"] {
            assert_eq!(of(text), Err(tonic::Code::InvalidArgument), "{text}");
        }
    }

    /// A negative timeout is over; one that the clock cannot represent counts as none.
    #[test]
    fn timeouts_of_calls_are_durations() {
        let of = |seconds, nanos| timeout_in(&prost_types::Duration { seconds, nanos });
        assert_eq!(of(1, 500_000_000), Some(Duration::from_millis(1500)));
        assert_eq!(of(-5, 0), Some(Duration::ZERO));
        assert_eq!(of(0, -1), Some(Duration::ZERO));
        assert_eq!(of(i64::MAX, i32::MAX), None);
    }
}
