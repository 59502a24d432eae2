// The benchmark is plain JavaScript; its tests take it as it is.
declare module '*.mjs';
