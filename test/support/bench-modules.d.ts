// bench/ is JavaScript with its own type check (bench/tsconfig.json). Tests import its modules without types.
declare module '*.mjs';
