// Entry point: loads the styles and starts the console.
import './style/theme.css';
import './style/base.css';
import './style/controls.css';
import './style/shell.css';
import './style/overlays.css';
import './style/query-panel.css';
import './style/chart.css';
import './style/table.css';
import './style/logs.css';
import './style/log-search.css';
import './style/overview.css';
import './style/alerts.css';
import { ConsoleApp } from './app.ts';

const host = document.getElementById('console');
if (host !== null) new ConsoleApp(host).open();
