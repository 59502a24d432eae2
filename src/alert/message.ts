// A notification as an HTTP request, in the form that each type of receiver expects.
import { createHmac } from 'node:crypto';
import { redactJson, redactText } from '../endpoint/redact.ts';
import type { Receiver } from './receivers.ts';
import type { Item, Json, Notification } from './state.ts';

export interface Message {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** The same notification always has the same body. */
export function toMessage(receiver: Receiver, notification: Notification): Message {
  const { url, type, secret, authorization } = receiver;
  const items = receiver.redact ? notification.items.map(redact) : notification.items;
  const body = JSON.stringify(BODIES[type]({ ...notification, items }));
  return {
    url: type === 'alertmanager' ? `${url.replace(/\/+$/, '')}/api/v2/alerts` : url,
    headers: {
      'Content-Type': 'application/json',
      'User-Agent': 'dendro',
      'Idempotency-Key': notification.id,
      ...(authorization && { Authorization: authorization }),
      ...(secret && {
        'Dendro-Signature': `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`,
      }),
    },
    body,
  };
}

/** In a link, only what follows the address of the console, which the operator has set. */
function redact({ link, ...item }: Item): Item {
  const console = link?.split('?', 1)[0] ?? '';
  const redacted = JSON.parse(redactJson(JSON.stringify(item))) as Omit<Item, 'link'>;
  return { ...redacted, link: link && console + redactText(link.slice(console.length)) };
}

const BODIES = { webhook: toWebhook, slack: toSlack, alertmanager: toAlertmanager };

function toWebhook({ id, alert, severity, created_at, items }: Notification): Json {
  return {
    ...{ version: 1, id, alert, severity, state: stateOf(items), created_at },
    instances: items.map(({ id: _, severity: __, ...item }) => item),
  };
}

/** The worst first. */
const STATES = ['error', 'firing', 'resolved'] as const;

/** The worst state of all instances. */
function stateOf(items: readonly Item[]): Item['state'] {
  return STATES.find(state => items.some(item => item.state === state)) ?? 'resolved';
}

/** Slack shows only a part of longer messages. */
const MAX_SLACK_ITEMS = 10;
const SLACK_ICONS = { firing: ':rotating_light:', error: ':warning:', resolved: ':white_check_mark:' };

function toSlack({ alert, severity, items }: Notification): Json {
  const counts = STATES.map(state => [state, items.filter(item => item.state === state).length] as const)
    .filter(([, count]) => count > 0)
    .map(([state, count]) => `${count} ${state}`);
  // What needs attention comes first.
  const sorted = STATES.flatMap(state => items.filter(item => item.state === state));
  const lines = sorted.slice(0, MAX_SLACK_ITEMS).map(({ state, summary, reason, link }) => {
    const text = escapeSlack(reason === null ? summary : `${summary} (${reason})`);
    return `${SLACK_ICONS[state]} ${text}${link === null ? '' : ` <${link}|open>`}`;
  });
  const more = items.length - lines.length;
  const heading = `*${escapeSlack(alert)}* (${severity}): ${counts.join(', ')}`;
  return { text: [heading, ...lines, ...(more > 0 ? [`and ${more} more`] : [])].join('\n') };
}

function escapeSlack(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/**
 * Alertmanager forgets an alert at its end, and when it restarts. So a firing one ends in two days, and alerts.ts sends it again every
 * few minutes, or with the next evaluation, which is a day later at most.
 */
const ALERTMANAGER_LIFETIME_MS = 2 * 86_400_000;
/** An end that is in the future for Alertmanager would be ignored. So its clock may be this much behind. */
const MAX_CLOCK_DIFFERENCE_MS = 60_000;

function toAlertmanager({ alert, created_at, items }: Notification): readonly Json[] {
  const createdAt = Date.parse(created_at);
  return items.map(({ cause, key, severity, summary, started_at, ended_at, link }) => {
    const names = Object.entries(key).map(([name, value]) => [name, toText(value)]);
    const startsAt = Math.min(Date.parse(started_at), createdAt); // the clock may have been set back
    const endsAt =
      ended_at === null
        ? createdAt + ALERTMANAGER_LIFETIME_MS
        : Math.max(startsAt, Math.min(Date.parse(ended_at), createdAt) - MAX_CLOCK_DIFFERENCE_MS);
    return {
      labels: {
        ...Object.fromEntries(names),
        ...{ alertname: alert, severity },
        ...(cause === 'row' ? {} : { cause }),
      },
      annotations: { summary },
      startsAt: new Date(startsAt).toISOString(),
      endsAt: new Date(endsAt).toISOString(),
      ...(link !== null && { generatorURL: link }),
    };
  });
}

export function toText(value: unknown): string {
  if (value === null || value === undefined) return '';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
