// Calls prepareDataDirectory() as the user nobody and prints its error. Needs root. The module is loaded before the user changes,
// because nobody may not be able to read the checkout.
import { prepareDataDirectory } from '../../dist/system/data-directory.js';

const [directory, uid] = process.argv.slice(2);
process.setgid?.(Number(uid));
process.setuid?.(Number(uid));
try {
  prepareDataDirectory(directory);
  process.stdout.write('usable');
} catch (error) {
  process.stdout.write(error.message);
}
