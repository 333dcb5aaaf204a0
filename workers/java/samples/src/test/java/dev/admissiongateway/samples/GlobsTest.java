package dev.admissiongateway.samples;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Globs match as Python's fnmatchcase does. */
class GlobsTest {
    @ParameterizedTest
    @DisplayName("Stars, question marks and sets match as in fnmatchcase.")
    @CsvSource({
        "*,'',true",
        "*,a/b,true",
        "a*c,abbc,true",
        "a*c,abcb,false",
        "a?c,abc,true",
        "a?c,ac,false",
        "'','',true",
        "'',a,false",
        "[a-c]x,bx,true",
        "[a-c]x,dx,false",
        "[!a-c]x,dx,true",
        "[!a-c]x,ax,false",
        "[]]x,]x,true",
        "[a,[a,true",
        "[a-]x,-x,true",
        "[-a]x,-x,true",
        "A,a,false",
        "*.io/*:1,q.io/a/b:1,true",
        "?,🚢,true",
        "[!]a]x,bx,true",
        "[!]a]x,]x,false",
        "*a*b*,xxaxxbxx,true",
        "*a*b*,xxbxxaxx,false",
        "[*]a,*a,true",
        "**a,a,true"
    })
    void matches(String glob, String text, boolean expected) {
        assertEquals(expected, Globs.matches(glob, text), glob + " against " + text);
    }

    @Test
    @DisplayName("No glob makes a match slow.")
    void slow() {
        assertEquals(false, Globs.matches("*a".repeat(1000) + "b", "a".repeat(20_000)));
    }
}
