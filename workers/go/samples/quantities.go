package samples

import (
	"encoding/json"
	"errors"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Kubernetes' quantities (k8s.io/apimachinery/pkg/api/resource): 100m, 1Gi, 1e3, 0.5.
//
//	<quantity>        ::= <signedNumber><suffix>
//	<suffix>          ::= <binarySI> | <decimalExponent> | <decimalSI>
//	<binarySI>        ::= Ki | Mi | Gi | Ti | Pi | Ei
//	<decimalSI>       ::= n | u | m | "" | k | M | G | T | P | E
//	<decimalExponent> ::= "e" <signedNumber> | "E" <signedNumber>
//
// "No matter which of the three exponent forms is used, no quantity may represent a number greater than 2^63-1 in
// magnitude, nor may it have more than 3 decimal places. Numbers larger or more precise will be capped or rounded
// up. (E.g.: 0.1m will rounded up to 1m.)" The code behind it rounds up at a billionth, and so does this.

var quantityForm = regexp.MustCompile(`\A([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(?:[eE]([+-]?[0-9]{1,9})|([KMGTPE]i|[numkMGTPE])?)\z`)

const (
	// longestQuantity is the longest accepted text. The largest quantity has 19 digits before and 9 after the point.
	longestQuantity = 128

	// largestExponent caps exponents: with 10^256 every number exceeds the largest quantity, and with 10^-256 one of
	// at most 128 digits is below the smallest. So 1e999999999 costs no memory.
	largestExponent = 256
)

var (
	largestQuantity = new(big.Rat).SetInt(new(big.Int).SetUint64(1<<63 - 1))
	billion         = big.NewRat(1_000_000_000, 1)
	decimalPowers   = map[string]int{"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
)

// quantity returns the exact value of a quantity, capped and rounded up as in Kubernetes.
func quantity(written string) (*big.Rat, error) {
	var parts []string
	if utf8.RuneCountInString(written) <= longestQuantity {
		parts = quantityForm.FindStringSubmatch(written)
	}
	if parts == nil {
		return nil, errors.New(quoted(shortened(written)) + " is no quantity such as 100m, 0.5 or 1Gi")
	}
	value, _ := new(big.Rat).SetString(strings.TrimSuffix(parts[1], "."))
	value.Mul(value, factor(parts[2], parts[3]))
	negative := value.Sign() < 0
	value.Abs(value)
	billionths := new(big.Rat).Mul(value, billion)
	value.SetFrac(ceiling(billionths), billion.Num())
	if value.Cmp(largestQuantity) > 0 {
		value.Set(largestQuantity)
	}
	if negative {
		value.Neg(value)
	}
	return value, nil
}

func factor(exponent, suffix string) *big.Rat {
	if binary := strings.TrimSuffix(suffix, "i"); binary != suffix {
		power := uint(10 * (strings.Index("KMGTPE", binary) + 1))
		return new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), power))
	}
	power := decimalPowers[suffix]
	if exponent != "" {
		power, _ = strconv.Atoi(exponent) // at most nine digits
		power = max(-largestExponent, min(largestExponent, power))
	}
	scale := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(power, -power))), nil))
	if power < 0 {
		scale.Inv(scale)
	}
	return scale
}

func ceiling(value *big.Rat) *big.Int {
	whole, rest := new(big.Int).QuoRem(value.Num(), value.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		whole.Add(whole, big.NewInt(1))
	}
	return whole
}

func shortened(text string) string {
	if characters := []rune(text); len(characters) > longestQuantity {
		return string(characters[:longestQuantity])
	}
	return text
}

// amountText returns the text of a quantity in JSON, which is a string or a number. false: the value is neither, and
// the text is its JSON.
func amountText(value any) (string, bool) {
	switch found := value.(type) {
	case string:
		return found, true
	case json.Number:
		return string(found), true
	default:
		text, _ := json.Marshal(value) // it was JSON
		return compact(text), false
	}
}
