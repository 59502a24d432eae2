// The seed of all random inputs of the tests, also of fast-check's. `DENDRO_TEST_SEED` selects another one.
import fc from 'fast-check';

export const SEED = Number(process.env['DENDRO_TEST_SEED'] ?? 1);

fc.configureGlobal({ seed: SEED });
