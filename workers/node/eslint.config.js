/** ESLint: its recommended rules, and unused code. `tsc` checks the types. */

import js from '@eslint/js';

export default [
  { ignores: ['types/**', 'tests/types.ts'] },
  js.configs.recommended,
  {
    languageOptions: {
      ecmaVersion: 2022,
      sourceType: 'module',
      // The type checker, which knows Node.js, checks globals.
      globals: {},
    },
    rules: {
      'no-undef': 'off',
      'prefer-const': 'error',
      'no-var': 'error',
      eqeqeq: 'error',
      'object-shorthand': 'error',
      'no-unused-vars': ['error', { argsIgnorePattern: '^_', ignoreRestSiblings: true }],
    },
  },
];
