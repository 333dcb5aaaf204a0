package dev.admissiongateway.worker;

/** The result of an author's check of settings: an error or a warning. */
public sealed interface Finding permits SettingsError, SettingsWarning {}
