// For commands whose first argument names what they do, such as `dendro token list`.
import type { Invocation } from '../config.ts';
import { suggest } from '../domain/closest-name.ts';
import { UsageError } from '../domain/errors.ts';

/** Returns the action and the arguments after it. Throws a UsageError if `actions` does not have it. */
export function readAction<Actions extends object>(
  { positionals: [action = '', ...others] }: Invocation,
  actions: Actions,
): { readonly action: keyof Actions; readonly others: readonly string[] } {
  if (Object.hasOwn(actions, action)) return { action: action as keyof Actions, others };
  const problem = action === '' ? 'an action is required' : `unknown action ${action}`;
  throw new UsageError(`${problem}; ${suggest(action, Object.keys(actions), 'actions')}`);
}
