// Where screenshots are left for a person to look at.
import { join } from 'node:path';

export const OUTPUT = join(import.meta.dirname, '..', 'output');
