/** ESLint: what it recommends, and that nothing is left lying around. The types are `tsc`'s. */

import js from '@eslint/js';

export default [
  { ignores: ['types/**', 'tests/types.ts'] },
  js.configs.recommended,
  {
    languageOptions: {
      ecmaVersion: 2022,
      sourceType: 'module',
      // Whether a global exists is the type checker's affair, which knows Node.js.
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
