package samples

import "strings"

// Globs as in the case statement of a shell: * matches any text, slashes included, ? any character, [a-z] one of
// these characters and [!a-z] any other. A bracket without an end matches itself, and an empty range matches nothing.

// globMatches reports whether a glob matches a whole text. It backtracks to the last * only, so its time is limited
// by the product of the lengths.
func globMatches(glob, text string) bool {
	pattern, characters := []rune(glob), []rune(text)
	at, star, resumed := 0, -1, 0
	for place := 0; place < len(characters); {
		if at < len(pattern) && pattern[at] == '*' {
			star, resumed = at, place
			at++
			continue
		}
		if at < len(pattern) {
			if matches, length := matchesOne(pattern[at:], characters[place]); matches {
				at += length
				place++
				continue
			}
		}
		if star < 0 {
			return false
		}
		resumed++
		at, place = star+1, resumed
	}
	return strings.Trim(string(pattern[at:]), "*") == ""
}

// matchesOne reports whether the first element of a glob matches a character, and the length of that element.
func matchesOne(pattern []rune, character rune) (matches bool, length int) {
	switch pattern[0] {
	case '?':
		return true, 1
	case '[':
		if end := bracketEnd(pattern); end > 0 {
			return bracketHolds(pattern[1:end], character), end + 1
		}
	}
	return pattern[0] == character, 1
}

// bracketEnd returns the index of the closing bracket; 0: none. A "]" directly after "[" or "[!" is a member.
func bracketEnd(pattern []rune) int {
	end := 1
	if end < len(pattern) && pattern[end] == '!' {
		end++
	}
	if end < len(pattern) && pattern[end] == ']' {
		end++
	}
	for end < len(pattern) && pattern[end] != ']' {
		end++
	}
	if end >= len(pattern) {
		return 0
	}
	return end
}

func bracketHolds(members []rune, character rune) bool {
	negated := len(members) > 0 && members[0] == '!'
	if negated {
		members = members[1:]
	}
	for index := 0; index < len(members); index++ {
		first, last := members[index], members[index]
		if index+2 < len(members) && members[index+1] == '-' {
			last = members[index+2]
			index += 2
		}
		if first <= character && character <= last {
			return !negated
		}
	}
	return negated
}
