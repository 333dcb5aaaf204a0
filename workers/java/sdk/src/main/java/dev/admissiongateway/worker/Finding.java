package dev.admissiongateway.worker;

/** What an author's own check says of settings: that something is wrong, or worth a warning. */
public sealed interface Finding permits SettingsError, SettingsWarning {}
